"""PydanticAI with a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip('pydantic_ai')

from contract import Contract, Scene
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from svc_gateway import AgentClient
from svc_gateway.pydantic_ai import SvcCapability


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    called = any(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    part: Any = TextPart('done') if called else ToolCallPart('pay', {'amount': 500}, 'call-1')
    return ModelResponse([part], usage=RequestUsage(input_tokens=10, output_tokens=5), model_name='scripted-1')


class PydanticScene(Scene):
    def __init__(self, client: AgentClient, **options: Any) -> None:
        super().__init__()
        self.agent = Agent(
            FunctionModel(script, model_name='scripted-1'),
            output_type=[str, DeferredToolRequests],
            capabilities=[SvcCapability(client, **options)],
        )
        self.agent.tool_plain(self.pay)

    def start(self, **more: Any) -> Any:
        prompt = () if more else ('pay',)
        return asyncio.run(self.agent.run(*prompt, **more))

    def read(self, result: Any) -> str:
        parts = [part for message in result.all_messages() for part in message.parts]
        return str(next(part.content for part in parts if isinstance(part, ToolReturnPart)))

    def run(self) -> str:
        return self.read(self.start())


class TestPydanticAi(Contract):
    make = PydanticScene
    raises = True

    def test_an_approval_is_deferred_and_the_approved_tool_runs_once(self, world: Any) -> None:
        client = world.client('asked')
        scene = PydanticScene(client)
        first = scene.start()
        assert isinstance(first.output, DeferredToolRequests)
        approval_id = first.output.metadata['call-1']['approval_id']
        # The answer to the deferred request decides nothing: people do, at the gateway.
        more = {
            'message_history': first.all_messages(),
            'deferred_tool_results': DeferredToolResults(approvals={'call-1': True}),
        }
        again = scene.start(**more)
        assert (scene.ran, isinstance(again.output, DeferredToolRequests)) == ([], True)
        world.gateway.decide(approval_id, 'approve')
        assert scene.read(scene.start(**more)) == 'paid'
        assert scene.ran == [500]
        assert len(world.ops(client)) == 1
