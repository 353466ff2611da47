"""PydanticAI: a capability that checks each tool call of an agent.

    agent = Agent(model, tools=[pay], capabilities=[SvcCapability(client)])

A denial is `ToolFailed`: the model reads why, and the run goes on. An approval is `ApprovalRequired`, where the agent's
`output_type` has `DeferredToolRequests`: run again with `DeferredToolResults`; the gateway, where people decide, is
asked again. With `approvals='wait'` the call waits.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart

from .gate import Approvals, Client, Gate, Pending, Refused, ToolCall
from .types import Usage


class SvcCapability(AbstractCapability[Any]):
    """`approvals` is `native` (the run ends with deferred requests) or `wait`. With `usage`, tokens are recorded."""

    def __init__(self, client: Client, *, approvals: Approvals = 'native', usage: bool = True) -> None:
        self._gate = Gate(client)
        self._is_native = approvals == 'native'
        self._counts = usage

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], handler: Any
    ) -> Any:
        gate, io = self._gate, self._gate.async_io
        asked = ToolCall(call.tool_name, args, str(ctx.conversation_id or ctx.run_id), call.tool_call_id)
        # Who approves a deferred call here is not who decides: people do, at the gateway.
        begun = await gate.begin(io, asked, waits=not self._is_native)
        if isinstance(begun, Pending):
            raise ApprovalRequired(metadata={'approval_id': begun.approval_id, 'reason': begun.answer.reason})
        if isinstance(begun, Refused):
            raise ToolFailed(begun.message)
        gate.enter(begun)
        try:
            result = await handler(begun.arguments)
        except (ApprovalRequired, CallDeferred):
            # The tool itself waits for somebody: it is called again under the same ids.
            gate.leave(begun)
            gate.detach(begun)
            raise
        except BaseException as error:
            gate.leave(begun)
            refused = await gate.fail(io, begun, error)
            if refused is not None and isinstance(error, Exception) and not isinstance(error, ModelRetry):
                raise ToolFailed(refused.message) from error
            raise
        gate.leave(begun)
        ended = await gate.end(io, begun, result)
        if isinstance(ended, Refused):
            raise ToolFailed(ended.message)
        return ended

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        if self._counts and (response.usage.input_tokens or response.usage.output_tokens):
            usage = Usage(
                model=str(response.model_name or 'unknown'),
                provider=response.provider_name,
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                cache_read_tokens=response.usage.cache_read_tokens or None,
                cache_write_tokens=response.usage.cache_write_tokens or None,
            )
            await self._gate.count(self._gate.async_io, usage, response.provider_response_id)
        return response
