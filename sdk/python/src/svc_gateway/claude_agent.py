"""Claude Agent SDK: hooks that check each tool call, those of Claude Code's own tools too.

    options = ClaudeAgentOptions(hooks=svc_hooks(client))

A denial is the hook's `deny`, which the model reads. An approval is held until people have decided. The hooks block
where they fail; `can_use_tool` is skipped for tools that rules allow, and is no place for a check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from claude_agent_sdk import HookMatcher, ResultMessage

from .gate import Allowed, Client, Gate, Refused, ToolCall
from .types import Usage


def svc_hooks(client: Client, *, matcher: str | None = None) -> dict[Any, list[HookMatcher]]:
    """For `ClaudeAgentOptions(hooks=...)`; `matcher` names tools, such as `Bash|Write`; the default is all.

    The hooks' own time-out is that of the client's `approval_timeout` and a minute. To add hooks of your own, append
    them to the lists.
    """
    hooks = _Hooks(Gate(client))
    timeout = client._core.settings.approval_timeout + 60
    return {
        'PreToolUse': [HookMatcher(matcher, [hooks.before], timeout, 'block')],
        'PostToolUse': [HookMatcher(matcher, [hooks.after], timeout, 'block')],
        'PostToolUseFailure': [HookMatcher(matcher, [hooks.failed], timeout)],
    }


#: By session and model, what is recorded of it.
_RECORDED: WeakKeyDictionary[Client, dict[tuple[str, str], tuple[int, ...]]] = WeakKeyDictionary()


async def record_result(client: Client, message: ResultMessage) -> None:
    """Records the tokens of a session, by model: pass the `ResultMessage` at the end of each query.

    Its figures are those of the whole session so far; what was recorded before is taken off.
    """
    gate = Gate(client)
    recorded = _RECORDED.setdefault(client, {})
    for model, used in (message.model_usage or {}).items():
        names = ('inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens')
        fields: Mapping[str, Any] = used
        now = tuple(int(fields.get(name) or 0) for name in names)
        before = recorded.get((message.session_id, model), (0, 0, 0, 0))
        fresh, out, read, written = (max(0, each - old) for each, old in zip(now, before, strict=True))
        recorded[message.session_id, model] = now
        if fresh or out or read or written:
            usage = Usage(
                model=model,
                input_tokens=fresh + read + written,
                output_tokens=out,
                cache_read_tokens=read or None,
                cache_write_tokens=written or None,
            )
            usage_id = hashlib.sha256(f'{message.session_id}/{model}/{now}'.encode()).hexdigest()[:32]
            await gate.count(gate.async_io, usage, usage_id)


class _Hooks:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._calls: dict[str, Allowed] = {}

    async def before(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        try:
            return await self._before(given, str(tool_use_id or given['tool_use_id']))
        except Exception as error:
            self._gate.warn(error)
            return _deny(f'The call was not carried out: it could not be checked ({error}).')

    async def _before(self, given: Any, call_id: str) -> Any:
        arguments = dict(given['tool_input'])
        call = ToolCall(given['tool_name'], arguments, str(given['session_id']), call_id)
        begun = await self._gate.begin(self._gate.async_io, call, waits=True)
        if not isinstance(begun, Allowed):
            return _deny(begun.message)
        self._calls[call_id] = begun
        if begun.arguments == arguments:
            return {}  # Claude Code's own permissions still apply
        return {
            'hookSpecificOutput': {
                'hookEventName': 'PreToolUse',
                'permissionDecision': 'allow',
                'permissionDecisionReason': 'allowed with the arguments as policy changes them',
                'updatedInput': begun.arguments,
            }
        }

    async def after(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        begun = self._calls.pop(str(tool_use_id or given.get('tool_use_id')), None)
        if begun is None:
            return {}
        response = given.get('tool_response')
        ended = await self._gate.end(self._gate.async_io, begun, response)
        if isinstance(ended, Refused):
            return {
                'continue_': False,
                'stopReason': ended.message,
                'decision': 'block',
                'reason': ended.message,
                'hookSpecificOutput': {
                    'hookEventName': 'PostToolUse',
                    'updatedToolOutput': _withheld(response, ended.message),
                },
            }
        if ended is response:
            return {}
        return {'hookSpecificOutput': {'hookEventName': 'PostToolUse', 'updatedToolOutput': ended}}

    async def failed(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        begun = self._calls.pop(str(tool_use_id or given.get('tool_use_id')), None)
        if begun is not None:
            await self._gate.fail(self._gate.async_io, begun, RuntimeError(str(given.get('error', 'failed'))))
        return {}


def _deny(reason: str) -> dict[str, Any]:
    return {
        'hookSpecificOutput': {
            'hookEventName': 'PreToolUse',
            'permissionDecision': 'deny',
            'permissionDecisionReason': reason,
        }
    }


def _withheld(response: Any, message: str) -> Any:
    """The message in the shape of the tool's own output: another shape is not taken, and the output is kept."""
    if isinstance(response, list):
        return [{'type': 'text', 'text': message}]
    if isinstance(response, dict):
        return {
            name: _withheld(value, message) if isinstance(value, (str, list, dict)) else value
            for name, value in response.items()
        }
    return message
