"""The obligations of an allow, which the agent has to meet.

`redact`, `set` and `cap` edit attributes and results by dotted paths, and `notify` has a message. Values come back
edited, never changed in place. What cannot be edited raises TypeError: leaving an obligation out is not meeting it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .types import Obligation

REDACTED = '[redacted]'
RESULT = 'result'

_ABSENT = object()


def edited_attributes(
    attributes: Mapping[str, Any] | None, obligations: Sequence[Obligation]
) -> Mapping[str, Any] | None:
    """The attributes as the obligations change them; the same object if nothing is about them."""
    edited = _edit(attributes or {}, obligations, lambda path: path[0] != RESULT or len(path) == 1)
    if edited is attributes or (attributes is None and not edited):
        return attributes
    if attributes is not None and edited == attributes:
        return attributes
    return dict(edited)


def edited_result(result: Any, obligations: Sequence[Obligation]) -> Any:
    """Returns the result of the body, as the obligations change it."""
    return _edit({RESULT: result}, obligations, lambda path: path[0] == RESULT and len(path) > 1)[RESULT]


def concerns_result(obligations: Sequence[Obligation]) -> bool:
    return any(path.startswith(f'{RESULT}.') for each in obligations for path in _paths_of(each))


def notices_in(obligations: Sequence[Obligation]) -> list[str]:
    return [str(each.properties.get('message', '')) for each in obligations if each.type == 'notify']


class _Change:
    def __init__(self, obligation: Obligation) -> None:
        self.what = f'obligation {obligation.id}'
        self.creates = obligation.type == 'set'
        self.apply = self._applied_by(obligation)

    def _applied_by(self, obligation: Obligation) -> Callable[[Any], Any]:
        if obligation.type == 'redact':
            return lambda _value: REDACTED
        if obligation.type == 'set':
            return lambda _value: obligation.properties.get('value')
        if obligation.type == 'cap':
            most = obligation.properties.get('max')
            if isinstance(most, bool) or not isinstance(most, (int, float)):
                raise TypeError(f'{self.what} has no number as its max')
            return lambda value: _capped(value, most)
        if obligation.type == 'notify':
            return lambda value: value
        raise TypeError(f'{self.what} has the type {obligation.type}, which this client does not support')


def _paths_of(obligation: Obligation) -> list[str]:
    if obligation.type == 'notify':
        return []
    properties = obligation.properties
    named = properties.get('paths') if obligation.type == 'redact' else [properties.get('path')]
    if not isinstance(named, list) or not named or not all(isinstance(each, str) for each in named):
        raise TypeError(f'obligation {obligation.id} names no path')
    return named


def _edit(value: Any, obligations: Sequence[Obligation], is_here: Callable[[list[str]], bool]) -> Any:
    for obligation in obligations:
        change = _Change(obligation)
        for text in _paths_of(obligation):
            path = text.split('.')
            if is_here(path):
                value = _changed_at(value, path, change)
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _capped(value: Any, most: float) -> Any:
    """A number, or one written as text, is at most `most`; anything else that stands there is replaced by it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if value <= most else most
    if isinstance(value, str) and '_' not in value and _number(value) <= most:
        return value
    return most


def _changed_at(value: Any, path: list[str], change: _Change) -> Any:
    """A number counts in a list, another name goes into each of its items; `*` stands for every name."""
    if not path:
        return change.apply(value)
    name, rest = path[0], path[1:]
    if isinstance(value, str):
        return _changed_in_text(value, path, change)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        is_index = name.isascii() and name.isdigit()
        inside = rest if is_index or name == '*' else path
        changed = [
            item if is_index and at != int(name) else _changed_at(item, inside, change) for at, item in enumerate(value)
        ]
        return value if all(one is other for one, other in zip(changed, value, strict=True)) else changed
    if not isinstance(value, Mapping):
        raise TypeError(f'{change.what} is about a {type(value).__name__}, which cannot be edited: return plain JSON')
    if name == '*':
        edited: Mapping[str, Any] = value
        for key in value:
            edited = _with(edited, key, _changed_at(value[key], rest, change))
        return edited
    if name in value:
        return _with(value, name, _changed_at(value[name], rest, change))
    if not change.creates:
        return value
    return _with(value, name, change.apply(None) if not rest else _changed_at({}, rest, change))


def _changed_in_text(text: str, path: list[str], change: _Change) -> str:
    """Tools often answer with JSON as text. Other text has no names."""
    if text.lstrip()[:1] not in ('{', '['):
        return text
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    edited = _changed_at(parsed, path, change)
    return text if edited is parsed else json.dumps(edited)


def _with(fields: Mapping[str, Any], name: str, member: Any) -> Mapping[str, Any]:
    if fields.get(name, _ABSENT) is member:
        return fields
    return {**fields, name: member}
