"""The arguments of a function as the attributes of an action, and back."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH = 30


def jsonable(value: Any, depth: int = 0) -> Any:
    """Returns what JSON can hold of a value; of anything else, its text."""
    if depth > MAX_DEPTH:
        return '...'
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(each, depth + 1) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: jsonable(getattr(value, each.name), depth + 1) for each in dataclasses.fields(value)}
    dump = getattr(value, 'model_dump', None)
    if callable(dump) and not isinstance(value, type):
        return jsonable(dump(mode='json'), depth + 1)
    if isinstance(value, (bytes, bytearray)):
        return f'{len(value)} bytes'
    return str(value)


def restored(originals: Mapping[str, Any], sent: Mapping[str, Any], edited: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what obligations changed of them. Raises TypeError where a value cannot be changed."""
    values = dict(originals)
    for name in [*edited, *(each for each in sent if each not in edited)]:
        if name not in edited:
            values.pop(name, None)
        elif name not in sent:
            values[name] = edited[name]
        elif edited[name] != sent[name]:
            if originals[name] != sent[name] and not isinstance(originals[name], tuple):
                kind = type(originals[name]).__name__
                raise TypeError(f'an obligation changes {name}, which is a {kind} and cannot be edited')
            values[name] = edited[name]
    return values


class Call:
    """A call of a function: its arguments by name."""

    def __init__(self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._signature = signature
        self._bound = signature.bind(*args, **kwargs)
        self._bound.apply_defaults()
        self.by_name: dict[str, Any] = {}
        self._extra: str | None = None
        self._own: str | None = None
        for at, (name, parameter) in enumerate(signature.parameters.items()):
            if at == 0 and name in ('self', 'cls'):
                self._own = name
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._extra = name
                self.by_name.update(self._bound.arguments[name])
            else:
                self.by_name[name] = self._bound.arguments[name]
        self.attributes: dict[str, Any] = {name: jsonable(value) for name, value in self.by_name.items()}

    def edited(self, attributes: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call with. Raises TypeError where an obligation cannot be met."""
        values = restored(self.by_name, self.attributes, attributes)
        arguments = self._bound.arguments
        extra = {}
        for name, value in values.items():
            if name in self._signature.parameters and name != self._extra:
                arguments[name] = value
            elif self._extra is not None:
                extra[name] = value
            else:
                raise TypeError(f'an obligation sets {name}, which the function does not take')
        if self._extra is not None:
            arguments[self._extra] = extra
        return self._bound.args, self._bound.kwargs


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Raises TypeError where a callable does not show its parameters."""
    try:
        return inspect.signature(function)
    except ValueError as error:
        raise TypeError(f'the parameters of {function!r} are not known: wrap it in a function') from error


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, '__name__', None)
    if not isinstance(name, str) or name == '<lambda>':
        raise TypeError('guard needs the name of the tool: guard(name, function)')
    return name
