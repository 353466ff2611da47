"""CrewAI: each tool call of every crew in this process is checked.

    uninstall = install(client)

A denial blocks the call, and the agent reads why as the tool's result. CrewAI has no pause for tools, so a call that
people have to approve waits for them. What goes wrong in its hooks CrewAI ignores, and runs the tool: here, anything
that goes wrong blocks it.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from typing import Any

from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMCallCompletedEvent
from crewai.hooks import (
    register_after_tool_call_hook,
    register_before_tool_call_hook,
    unregister_after_tool_call_hook,
    unregister_before_tool_call_hook,
)
from crewai.hooks.dispatch import HookAborted

from .gate import Allowed, Client, Gate, Refused, ToolCall
from .types import Usage
from .waits import drive

#: How CrewAI begins what an agent reads of a tool that has raised, or that another hook has blocked.
FAILED = re.compile(r'\s*(?:Error executing tool|I encountered an error|Tool execution blocked by hook)')


def install(client: Client, *, usage: bool = True) -> Callable[[], None]:
    """Registers the hooks, and returns a function that takes them back. With `usage`, tokens are recorded."""
    hooks = _Hooks(Gate(client))
    register_before_tool_call_hook(hooks.before)
    register_after_tool_call_hook(hooks.after)
    if usage:
        crewai_event_bus.on(LLMCallCompletedEvent)(hooks.count)

    def uninstall() -> None:
        unregister_before_tool_call_hook(hooks.before)
        unregister_after_tool_call_hook(hooks.after)
        if usage:
            crewai_event_bus.off(LLMCallCompletedEvent, hooks.count)

    return uninstall


class _Hooks:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = threading.Lock()
        #: The same dictionary of arguments is passed to both hooks of a call, and names it.
        self._calls: dict[int, tuple[dict[str, Any], Allowed | Refused]] = {}
        # Bound once: CrewAI compares hooks by identity.
        self.before = self._before
        self.after = self._after
        self.count = self._count

    def _before(self, context: Any) -> None:
        try:
            begun = self._begun(context)
        except BaseException as error:
            raise HookAborted(f'the call could not be checked: {error}', 'svc-gateway') from error
        with self._lock:
            self._calls[id(context.tool_input)] = (context.tool_input, begun)
        if isinstance(begun, Refused):
            raise HookAborted(begun.message, 'svc-gateway')

    def _begun(self, context: Any) -> Allowed | Refused:
        session = getattr(context.crew, 'id', None) or getattr(context.agent, 'id', None) or 'crew'
        call = ToolCall(context.tool_name, dict(context.tool_input), str(session), uuid.uuid4().hex[:16])
        begun = drive(self._gate.begin(self._gate.thread_io, call, waits=True))
        if isinstance(begun, Allowed):
            if begun.arguments != context.tool_input:
                context.tool_input.clear()
                context.tool_input.update(begun.arguments)
            return begun
        return begun if isinstance(begun, Refused) else Refused(begun.message)

    def _after(self, context: Any) -> str | None:
        try:
            with self._lock:
                _arguments, begun = self._calls.pop(id(context.tool_input), (None, None))
            return None if begun is None else self._read(context, begun)
        except Exception as error:
            self._gate.warn(error)
            return f'The result of {context.tool_name} is withheld: {error}.'

    def _read(self, context: Any, begun: Allowed | Refused) -> str | None:
        """Returns what the agent reads instead of the result; None for the result itself."""
        if isinstance(begun, Refused):
            return begun.message
        io, result = self._gate.thread_io, context.tool_result
        if isinstance(result, str) and FAILED.match(result):
            refused = drive(self._gate.fail(io, begun, RuntimeError(result)))
            return None if refused is None else refused.message
        ended = drive(self._gate.end(io, begun, result))
        if isinstance(ended, Refused):
            return ended.message
        return None if ended is result else str(ended)

    def _count(self, _source: Any, event: LLMCallCompletedEvent) -> None:
        used = event.usage or {}
        read = used.get('prompt_tokens', used.get('input_tokens'))
        written = used.get('completion_tokens', used.get('output_tokens'))
        if read is None and written is None:
            return
        usage = Usage(model=str(event.model or 'unknown'), input_tokens=int(read or 0), output_tokens=int(written or 0))
        drive(self._gate.count(self._gate.thread_io, usage, event.response_id or event.call_id))
