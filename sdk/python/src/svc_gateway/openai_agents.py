"""OpenAI Agents SDK: the function tools of an agent, each call checked.

    agent = Agent(name='payer', tools=guard_tools(client, [pay, refund]))

A denial is what the model reads as the tool's output, and the run goes on. An approval is an interruption of the run,
as that of `needs_approval`: `state.approve(item)` and run again; the gateway, where people decide, is asked again.
Hosted tools, which run at the provider, never pass here.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunContextWrapper, RunHooks, Tool
from agents.tool_context import ToolContext

from .gate import Allowed, Approvals, Client, Gate, Pending, Refused, ToolCall
from .types import Usage

#: Of a session: the same when a run is resumed.
Session = str | Callable[[RunContextWrapper[Any]], str]

#: How the SDK begins what the model reads of a tool that has raised.
FAILURE = 'An error occurred while running the tool'


def guard_tools(
    client: Client, tools: Sequence[Tool], *, approvals: Approvals = 'native', session: Session | None = None
) -> list[Tool]:
    """The tools behind a check of `tool.call` on their names; the arguments are the attributes.

    `session` names the conversation, as text or made of the run's context; the default is the call's own id.
    `approvals` is `native` (interrupts the run) or `wait`. Raises TypeError for a tool that runs at the provider.
    """
    gate = Gate(client)
    return [_guarded(gate, tool, approvals == 'native', session) for tool in tools]


class UsageHooks(RunHooks[Any]):
    """Records the tokens of each model call: `Runner.run(agent, input, hooks=UsageHooks(client))`."""

    def __init__(self, client: Client) -> None:
        self._gate = Gate(client)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        used = response.usage
        details = used.input_tokens_details
        model = agent.model if isinstance(agent.model, str) else getattr(agent.model, 'model', None)
        usage = Usage(
            model=str(model or 'unknown').removeprefix('litellm/'),
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=getattr(details, 'cached_tokens', None) or None,
        )
        await self._gate.count(self._gate.async_io, usage, response.response_id)


def _guarded(gate: Gate, tool: Tool, is_native: bool, session: Session | None) -> Tool:
    if not isinstance(tool, FunctionTool):
        raise TypeError(f'{getattr(tool, "name", tool)} runs at the provider, where no check can stop it')
    invoke, needs_approval = tool.on_invoke_tool, tool.needs_approval
    refusals: dict[str, Refused] = {}

    def call_of(context: RunContextWrapper[Any], call_id: str, arguments: dict[str, Any]) -> ToolCall:
        named = session(context) if callable(session) else session
        return ToolCall(tool.name, arguments, str(named or call_id), call_id)

    async def needs(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Whether people have to decide. What is denied is so when the tool is invoked, which tells the model."""
        own: Any = needs_approval
        if callable(own):
            own = own(context, arguments, call_id)
            own = await own if inspect.isawaitable(own) else own
        if own or not is_native:
            return bool(own)
        decided = await gate.decide(gate.async_io, call_of(context, call_id, arguments))
        if isinstance(decided, Refused):
            # A denied operation is over: asked again, the gateway would say only that.
            refusals[call_id] = decided
        return isinstance(decided, Pending)

    async def on_invoke_tool(context: ToolContext[Any], text: str) -> Any:
        arguments = _parsed(text)
        if arguments is None:
            return await invoke(context, text)  # which says to the model what is wrong with them
        io = gate.async_io
        begun: Allowed | Refused | Pending | None = refusals.pop(context.tool_call_id, None)
        if begun is None:
            begun = await gate.begin(io, call_of(context, context.tool_call_id, arguments), waits=True)
        if isinstance(begun, (Refused, Pending)):
            return begun.message
        gate.enter(begun)
        try:
            rewritten = text if begun.arguments == arguments else json.dumps(begun.arguments)
            result = await invoke(context, rewritten)
        except BaseException as error:
            gate.leave(begun)
            refused = await gate.fail(io, begun, error)
            if refused is None or not isinstance(error, Exception):
                raise
            return refused.message
        gate.leave(begun)
        if isinstance(result, str) and result.startswith(FAILURE):
            refused = await gate.fail(io, begun, RuntimeError(result))
            return result if refused is None else refused.message
        ended = await gate.end(io, begun, result)
        return ended.message if isinstance(ended, Refused) else ended

    guarded = copy.copy(tool)
    guarded.on_invoke_tool = on_invoke_tool
    guarded.needs_approval = needs
    return guarded


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        arguments = json.loads(text) if text else {}
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None
