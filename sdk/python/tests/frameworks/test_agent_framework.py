"""Microsoft Agent Framework with a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip('agent_framework')

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    MiddlewareFailure,
    tool,
)
from contract import Contract, Scene

from svc_gateway import AgentClient
from svc_gateway import agent_framework as adapter


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_more: Any) -> Any:
        async def respond() -> ChatResponse[Any]:
            contents = [content for message in messages for content in message.contents]
            reply: Any = 'done'
            if not any(content.type == 'function_result' for content in contents):
                reply = Content.from_function_call('call-1', 'pay', arguments='{"amount": 500}')
            return ChatResponse(
                messages=[Message('assistant', [reply])],
                response_id='r-1',
                model='scripted-1',
                usage_details={'input_token_count': 10, 'output_token_count': 5},
            )

        return respond()


class AgentFrameworkScene(Scene):
    def __init__(self, client: AgentClient, **options: Any) -> None:
        super().__init__()

        @tool(approval_mode='never_require')
        def pay(amount: int) -> str:
            """Pays."""
            return self.pay(amount)

        self.agent = Agent(client=Script(), tools=[pay], middleware=[*adapter.svc_middleware(client, **options)])
        self.session = self.agent.create_session(session_id=f'session-{client.agent.agent_id}')

    def start(self, given: Any = 'pay') -> Any:
        return asyncio.run(self.agent.run(given, session=self.session))

    def read(self, response: Any) -> str:
        contents = [content for message in response.messages for content in message.contents]
        return str(next(content.result for content in contents if content.type == 'function_result'))

    def run(self) -> str:
        return self.read(self.start())


class TestAgentFramework(Contract):
    make = AgentFrameworkScene

    def test_an_approval_is_asked_of_the_user_and_the_approved_tool_runs_once(self, world: Any) -> None:
        client = world.client('asked')
        scene = AgentFrameworkScene(client)
        [request] = scene.start().user_input_requests
        approval_id = request.additional_properties['approval_id']
        # The answer to the request decides nothing: people do, at the gateway.
        answer = Message('user', [request.to_function_approval_response(True)])
        [again] = scene.start(answer).user_input_requests
        assert scene.ran == []
        world.gateway.decide(approval_id, 'approve')
        assert 'paid' in scene.read(scene.start(Message('user', [again.to_function_approval_response(True)])))
        assert scene.ran == [500]
        assert len(world.ops(client)) == 1

    def test_a_mistake_of_the_middleware_ends_the_run(self, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        scene = AgentFrameworkScene(world.client('open'))

        def broken(*_args: Any) -> None:
            raise RuntimeError('a mistake')

        monkeypatch.setattr(adapter, '_call_of', broken)
        with pytest.raises(MiddlewareFailure, match='a mistake'):
            scene.run()
        assert scene.ran == []
