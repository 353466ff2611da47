"""LangChain and LangGraph: each tool call of an agent is checked.

    agent = create_agent(model, tools, middleware=[SvcMiddleware(client)], checkpointer=InMemorySaver())

A denial is a tool message with the status `error`, which the model reads. With a checkpointer, an approval interrupts
the graph as `HumanInTheLoopMiddleware` does for a single call; resume it with `Command(resume={interrupt_id:
{'type': 'approve'}})` once people have decided at the gateway, which is asked again. Without one, the call waits. Tools
that the model's provider runs itself never pass here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, interrupt

from .gate import Allowed, Approvals, Client, Gate, Pending, Refused, ToolCall
from .types import Usage
from .waits import Io, drive

Result = ToolMessage | Command[Any]


class SvcMiddleware(AgentMiddleware[Any, Any, Any]):
    """Put it first in `middleware`, so that it is around all others.

    `approvals` is `native` (interrupts, where there is a checkpointer) or `wait`. With `usage`, the tokens of each
    model call are recorded.
    """

    def __init__(self, client: Client, *, approvals: Approvals = 'native', usage: bool = True) -> None:
        super().__init__()
        self._gate = Gate(client)
        self._is_native = approvals == 'native'
        self._counts = usage

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        gate, io = self._gate, self._gate.thread_io
        begun = drive(self._admitted(io, request))
        if not isinstance(begun, Allowed):
            return begun
        gate.enter(begun)
        try:
            result = handler(_with_arguments(request, begun))
        except BaseException as error:
            gate.leave(begun)
            # An interrupt of the tool itself: it is called again under the same ids.
            if isinstance(error, GraphBubbleUp):
                gate.detach(begun)
                raise
            refused = drive(gate.fail(io, begun, error))
            if refused is None or not isinstance(error, Exception):
                raise
            return _error(request, refused.message)
        gate.leave(begun)
        return drive(self._ended(io, request, begun, result))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        gate, io = self._gate, self._gate.async_io
        begun = await self._admitted(io, request)
        if not isinstance(begun, Allowed):
            return begun
        gate.enter(begun)
        try:
            result = await handler(_with_arguments(request, begun))
        except BaseException as error:
            gate.leave(begun)
            if isinstance(error, GraphBubbleUp):
                gate.detach(begun)
                raise
            refused = await gate.fail(io, begun, error)
            if refused is None or not isinstance(error, Exception):
                raise
            return _error(request, refused.message)
        gate.leave(begun)
        return await self._ended(io, request, begun, result)

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        usage = self._usage_in(state)
        if usage is not None:
            drive(self._gate.count(self._gate.thread_io, *usage))
        return None

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        usage = self._usage_in(state)
        if usage is not None:
            await self._gate.count(self._gate.async_io, *usage)
        return None

    async def _admitted(self, io: Io, request: ToolCallRequest) -> Allowed | ToolMessage:
        """The request to run, or what the model reads in place of the result."""
        configurable = _configurable(request)
        interrupts = self._is_native and configurable.get('__pregel_checkpointer') is not None
        arguments = request.tool_call['args']
        while True:
            call = ToolCall(request.tool_call['name'], arguments, _session(request, configurable), _call_id(request))
            begun = await self._gate.begin(io, call, waits=not interrupts)
            if isinstance(begun, Allowed):
                return begun
            if isinstance(begun, Refused):
                return _error(request, begun.message)
            decision = _asked(request, arguments, begun)
            kind = decision.get('type')
            if kind == 'edit':
                arguments = decision['edited_action']['args']
            elif kind in ('reject', 'respond'):
                await self._gate.cancel(io, begun.approval_id)
                said = str(decision.get('message') or f'{call.name} was rejected by a person. Do not try it again.')
                return _message(request, said, 'error' if kind == 'reject' else 'success')

    async def _ended(self, io: Io, request: ToolCallRequest, begun: Allowed, result: Result) -> Result:
        if not isinstance(result, ToolMessage):
            refused = await self._gate.end(io, begun, None)
            return _error(request, refused.message) if isinstance(refused, Refused) else result
        if result.status == 'error':
            refused = await self._gate.fail(io, begun, RuntimeError(str(result.content)))
            return result if refused is None else _error(request, refused.message)
        edited = await self._gate.end(io, begun, result.content)
        if isinstance(edited, Refused):
            return _error(request, edited.message)
        return result if edited is result.content else result.model_copy(update={'content': edited})

    def _usage_in(self, state: Any) -> tuple[Usage, str | None] | None:
        messages = state.get('messages') if isinstance(state, dict) else getattr(state, 'messages', None)
        last = messages[-1] if messages else None
        if not self._counts or not isinstance(last, AIMessage) or last.usage_metadata is None:
            return None
        used = last.usage_metadata
        cached = used.get('input_token_details') or {}
        meta = last.response_metadata
        usage = Usage(
            model=str(meta.get('model_name') or meta.get('model') or 'unknown'),
            provider=meta.get('model_provider'),
            input_tokens=used['input_tokens'],
            output_tokens=used['output_tokens'],
            cache_read_tokens=cached.get('cache_read'),
            cache_write_tokens=cached.get('cache_creation'),
        )
        return usage, last.id


def _configurable(request: ToolCallRequest) -> dict[str, Any]:
    config = getattr(request.runtime, 'config', None) or {}
    found: dict[str, Any] = config.get('configurable') or {}
    return found


def _session(request: ToolCallRequest, configurable: dict[str, Any]) -> str:
    config = getattr(request.runtime, 'config', None) or {}
    return str(configurable.get('thread_id') or config.get('run_id') or request.tool_call['id'])


def _call_id(request: ToolCallRequest) -> str:
    return str(request.tool_call['id'])


def _with_arguments(request: ToolCallRequest, begun: Allowed) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, 'args': begun.arguments})


def _asked(request: ToolCallRequest, arguments: dict[str, Any], pending: Pending) -> dict[str, Any]:
    """Interrupts the graph; in the run after it, what its user has answered."""
    value = {
        'type': 'tool_approval',
        'tool_call_id': _call_id(request),
        'name': request.tool_call['name'],
        'args': arguments,
        'description': pending.message,
        'approval_id': pending.approval_id,
    }
    answer: Any = interrupt(value)
    if isinstance(answer, dict) and isinstance(answer.get('decisions'), list) and answer['decisions']:
        answer = answer['decisions'][0]
    return answer if isinstance(answer, dict) else {'type': 'approve' if answer else 'reject'}


def _message(request: ToolCallRequest, text: str, status: Any) -> ToolMessage:
    return ToolMessage(content=text, tool_call_id=_call_id(request), name=request.tool_call['name'], status=status)


def _error(request: ToolCallRequest, text: str) -> ToolMessage:
    return _message(request, text, 'error')
