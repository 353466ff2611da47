"""The OpenAI Agents SDK with a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip('agents')

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, WebSearchTool, function_tool
from agents.items import ToolCallOutputItem
from contract import Contract, Scene
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from svc_gateway import AgentClient
from svc_gateway.openai_agents import UsageHooks, guard_tools


class Script(Model):
    def __init__(self) -> None:
        self.turn = 0
        self.model = 'scripted-1'

    async def get_response(self, *_args: Any, **_options: Any) -> ModelResponse:
        self.turn += 1
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        output: Any = ResponseFunctionToolCall(
            arguments='{"amount": 500}', call_id='call-1', name='pay', type='function_call', id='fc-1'
        )
        if self.turn > 1:
            text = ResponseOutputText(annotations=[], text='done', type='output_text')
            output = ResponseOutputMessage(
                id='m-1', content=[text], role='assistant', status='completed', type='message'
            )
        return ModelResponse(output=[output], usage=usage, response_id=f'r-{self.turn}')

    def stream_response(self, *_args: Any, **_options: Any) -> Any:
        raise NotImplementedError


class OpenAiScene(Scene):
    def __init__(self, client: AgentClient, **options: Any) -> None:
        super().__init__()

        @function_tool
        def pay(amount: int) -> str:
            """Pays."""
            return self.pay(amount)

        tools = guard_tools(client, [pay], session=f'run-{client.agent.agent_id}', **options)
        self.agent = Agent(name='payer', model=Script(), tools=tools)
        self.hooks = UsageHooks(client)

    def start(self, given: Any = 'pay') -> Any:
        config = RunConfig(tracing_disabled=True)
        return asyncio.run(Runner.run(self.agent, given, hooks=self.hooks, run_config=config))

    def read(self, result: Any) -> str:
        return str(next(each.output for each in result.new_items if isinstance(each, ToolCallOutputItem)))

    def run(self) -> str:
        return self.read(self.start())


class TestOpenAiAgents(Contract):
    make = OpenAiScene

    def test_an_approval_interrupts_and_the_approved_tool_runs_once(self, world: Any) -> None:
        client = world.client('asked')
        scene = OpenAiScene(client)
        first = scene.start()
        assert (scene.ran, [each.name for each in first.interruptions]) == ([], ['pay'])
        world.gateway.decide(world.gateway.pending(client.agent.agent_id)['id'], 'approve')
        # As text, as an application keeps it while people decide.
        state: Any = asyncio.run(RunState.from_string(scene.agent, first.to_state().to_string()))
        state.approve(state.get_interruptions()[0])
        assert scene.read(scene.start(state)) == 'paid'
        assert scene.ran == [500]
        assert world.ops(client) == [f'run-{client.agent.agent_id}:call-1']

    def test_the_run_s_approval_alone_lets_nothing_run(self, world: Any) -> None:
        client = world.client('asked', approval_timeout=0.5)
        scene = OpenAiScene(client)
        state = scene.start().to_state()
        state.approve(state.get_interruptions()[0])
        assert 'nobody has decided on approval' in scene.read(scene.start(state))
        assert scene.ran == []

    def test_a_tool_of_the_provider_is_refused(self, world: Any) -> None:
        with pytest.raises(TypeError, match='runs at the provider'):
            guard_tools(world.client('open'), [WebSearchTool()])
