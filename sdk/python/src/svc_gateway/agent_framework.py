"""Microsoft Agent Framework: middleware that checks each function call.

    agent = Agent(client=model, tools=[pay], middleware=[*svc_middleware(client)])

A denial is the function's result, which the model reads. An approval is the framework's `function_approval_request`:
answer it with `to_function_approval_response(approved)`; the gateway, where people decide, is asked again. A mistake of
this middleware ends the run: the framework would go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
)

from .gate import Approvals, Client, Gate, Pending, Refused, ToolCall
from .types import Usage


def svc_middleware(
    client: Client, *, approvals: Approvals = 'native', usage: bool = True
) -> list[FunctionMiddleware | ChatMiddleware]:
    """Put them first in `middleware`. `approvals` is `native` (asks the user) or `wait`; `usage` records tokens."""
    gate = Gate(client)
    checks: list[FunctionMiddleware | ChatMiddleware] = [_Checks(gate, approvals == 'native')]
    return [*checks, _Counts(gate)] if usage else checks


class _Checks(FunctionMiddleware):
    def __init__(self, gate: Gate, is_native: bool) -> None:
        self._gate = gate
        self._is_native = is_native

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            call = _call_of(context)
            begun = await self._gate.begin(self._gate.async_io, call, waits=not self._is_native)
        except Exception as error:
            raise MiddlewareFailure(f'a call could not be checked: {error}') from error
        if isinstance(begun, Refused):
            context.result = begun.message
            return
        if isinstance(begun, Pending):
            context.result = _request_of(context, begun)
            return
        if begun.arguments != call.arguments:
            context.arguments = begun.arguments
        gate, io = self._gate, self._gate.async_io
        gate.enter(begun)
        try:
            await call_next()
        except (MiddlewareTermination, MiddlewareFailure, asyncio.CancelledError) as error:
            gate.leave(begun)
            await gate.fail(io, begun, error)
            raise
        except BaseException as error:
            gate.leave(begun)
            refused = await gate.fail(io, begun, error)
            if refused is None or not isinstance(error, Exception):
                raise
            context.result = refused.message
            return
        gate.leave(begun)
        await self._end(context, begun)

    async def _end(self, context: FunctionInvocationContext, begun: Any) -> None:
        result = context.result
        if isinstance(result, Content) and result.type == 'function_approval_request':
            # Another middleware asks first: the call comes again under the same ids.
            self._gate.detach(begun)
            return
        texts = _texts_of(result)
        ended = await self._gate.end(self._gate.async_io, begun, texts if texts is not None else result)
        if isinstance(ended, Refused):
            context.result = ended.message
        elif texts is None:
            context.result = ended
        elif ended != texts:
            context.result = str(ended)


class _Counts(ChatMiddleware):
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        result = context.result
        if isinstance(result, ChatResponse):
            await self._count(result)
        elif context.stream:
            context.stream_result_hooks.append(self._count)

    async def _count(self, response: ChatResponse[Any]) -> ChatResponse[Any]:
        used: Mapping[str, Any] = response.usage_details or {}
        if used.get('input_token_count') is not None or used.get('output_token_count') is not None:
            usage = Usage(
                model=str(response.model or 'unknown'),
                input_tokens=used.get('input_token_count') or 0,
                output_tokens=used.get('output_token_count') or 0,
                cache_read_tokens=used.get('cache_read_input_token_count'),
                cache_write_tokens=used.get('cache_creation_input_token_count'),
            )
            await self._gate.count(self._gate.async_io, usage, response.response_id)
        return response


def _call_of(context: FunctionInvocationContext) -> ToolCall:
    arguments = context.arguments
    if not isinstance(arguments, Mapping):
        arguments = arguments.model_dump()
    call_id = str(context.metadata.get('function_call_occurrence_id') or context.metadata['call_id'])
    session = getattr(context.session, 'session_id', None) or call_id
    return ToolCall(context.function.name, dict(arguments), str(session), call_id)


def _request_of(context: FunctionInvocationContext, pending: Pending) -> Content:
    call_id = str(context.metadata['call_id'])
    arguments = context.arguments if isinstance(context.arguments, Mapping) else context.arguments.model_dump()
    function_call = Content.from_function_call(call_id, context.function.name, arguments=dict(arguments))
    own_id = str(context.metadata.get('function_call_occurrence_id') or call_id)
    function_call.id = own_id
    return Content.from_function_approval_request(
        own_id,
        function_call,
        additional_properties={'approval_id': pending.approval_id, 'reason': pending.answer.reason},
    )


def _texts_of(result: Any) -> str | None:
    """The text of a result, where it is nothing else."""
    if isinstance(result, str):
        return result
    if isinstance(result, list) and len(result) == 1 and getattr(result[0], 'type', '') == 'text':
        return str(result[0].text)
    return None
