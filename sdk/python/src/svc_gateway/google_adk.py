"""Google ADK: a plugin that checks each tool call.

    runner = Runner(app_name='pay', agent=agent, session_service=sessions, plugins=[SvcPlugin(client)])

A denial is the tool's response `{'error': ...}`, which the model reads. An approval is the framework's confirmation:
answer the function call `adk_request_confirmation`; the gateway, where people decide, is asked again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool

from .gate import Allowed, Approvals, Client, Gate, Pending, Refused, ToolCall
from .types import Usage


class SvcPlugin(BasePlugin):
    """Put it first in `plugins`. `approvals` is `native` (asks for confirmation) or `wait`; `usage` records tokens."""

    def __init__(self, client: Client, *, approvals: Approvals = 'native', usage: bool = True) -> None:
        super().__init__(name='svc_gateway')
        self._gate = Gate(client)
        self._is_native = approvals == 'native'
        self._counts = usage
        self._calls: dict[tuple[str, str], Allowed] = {}

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        try:
            return await self._before(tool, tool_args, tool_context)
        except Exception as error:
            self._gate.warn(error)
            return {'error': f'{tool.name} was not carried out: it could not be checked ({error}).'}

    async def _before(self, tool: BaseTool, tool_args: dict[str, Any], context: Any) -> dict[str, Any] | None:
        gate, io, key = self._gate, self._gate.async_io, _key(context)
        answered = context.tool_confirmation
        # A confirmed call is not confirmed a second time: it waits for the people who decide at the gateway.
        waits = not self._is_native or (answered is not None and answered.confirmed)
        begun = await gate.begin(io, ToolCall(tool.name, dict(tool_args), *key), waits=waits)
        if isinstance(begun, Pending):
            if answered is not None and not answered.confirmed:
                await gate.cancel(io, begun.approval_id)
                return {'error': f'{tool.name} was rejected by a person. Do not try it again.'}
            context.request_confirmation(hint=begun.message, payload={'approval_id': begun.approval_id})
            context.actions.skip_summarization = True
            return {'error': begun.message}
        if isinstance(begun, Refused):
            return {'error': begun.message}
        if answered is not None and not answered.confirmed:
            await gate.fail(io, begun, RuntimeError('rejected by a person'))
            return {'error': f'{tool.name} was rejected by a person. Do not try it again.'}
        if begun.arguments != tool_args:
            tool_args.clear()
            tool_args.update(begun.arguments)
        self._calls[key] = begun
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        begun = self._calls.pop(_key(tool_context), None)
        if begun is None:
            return None
        ended = await self._gate.end(self._gate.async_io, begun, result)
        if isinstance(ended, Refused):
            return {'error': ended.message}
        if ended is result:
            return None
        return ended if isinstance(ended, dict) else {'result': ended}

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: BaseException
    ) -> dict[str, Any] | None:
        begun = self._calls.pop(_key(tool_context), None)
        if begun is None:
            return None
        refused = await self._gate.fail(self._gate.async_io, begun, error)
        if refused is None or isinstance(error, asyncio.CancelledError):
            return None
        return {'error': refused.message}

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        used = llm_response.usage_metadata
        if self._counts and used is not None and not llm_response.partial:
            usage = Usage(
                model=str(llm_response.model_version or 'unknown'),
                input_tokens=used.prompt_token_count or 0,
                output_tokens=(used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
                cache_read_tokens=used.cached_content_token_count,
            )
            await self._gate.count(self._gate.async_io, usage, None)
        return None


def _key(context: Any) -> tuple[str, str]:
    """Session and call, the same when the call is repeated after a confirmation."""
    return str(context.session.id), str(context.function_call_id)
