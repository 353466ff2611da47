"""Google ADK with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

pytest.importorskip('google.adk')

from contract import Contract, Scene
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from svc_gateway import AgentClient
from svc_gateway.google_adk import SvcPlugin


class Script(BaseLlm):
    async def generate_content_async(self, request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in request.contents for part in content.parts]
        part = types.Part(text='done')
        if not any(each.function_call for each in parts):
            part = types.Part(function_call=types.FunctionCall(id='call-1', name='pay', args={'amount': 500}))
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=5)
        content = types.Content(role='model', parts=[part])
        yield LlmResponse(content=content, usage_metadata=used, model_version='scripted-1')


class AdkScene(Scene):
    def __init__(self, client: AgentClient, **options: Any) -> None:
        super().__init__()

        def pay(amount: int) -> dict:
            """Pays."""
            return {'status': self.pay(amount)}

        self.sessions = InMemorySessionService()
        agent = LlmAgent(name='payer', model=Script(model='scripted-1'), tools=[pay])
        self.runner = Runner(
            app_name='pay', agent=agent, session_service=self.sessions, plugins=[SvcPlugin(client, **options)]
        )
        self.session = f'session-{client.agent.agent_id}'
        asyncio.run(self.sessions.create_session(app_name='pay', user_id='u', session_id=self.session))

    def send(self, part: types.Part) -> list[Any]:
        async def events() -> list[Any]:
            message = types.Content(role='user', parts=[part])
            stream = self.runner.run_async(user_id='u', session_id=self.session, new_message=message)
            return [event async for event in stream]

        return asyncio.run(events())

    @staticmethod
    def responses(events: list[Any]) -> list[Any]:
        found = [response for event in events for response in event.get_function_responses()]
        return [each.response for each in found if each.name == 'pay']

    def run(self) -> str:
        return str(self.responses(self.send(types.Part(text='pay')))[-1])

    def confirm(self, events: list[Any], confirmed: bool) -> list[Any]:
        calls = [call for event in events for call in event.get_function_calls()]
        asked = next(call for call in calls if call.name == 'adk_request_confirmation')
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response={'confirmed': confirmed})
        return self.send(types.Part(function_response=answer))


class TestGoogleAdk(Contract):
    make = AdkScene
    raises = True

    def test_an_approval_asks_for_confirmation_and_the_approved_tool_runs_once(self, world: Any) -> None:
        client = world.client('asked')
        scene = AdkScene(client)
        first = scene.send(types.Part(text='pay'))
        assert scene.ran == []
        world.gateway.decide(world.gateway.pending(client.agent.agent_id)['id'], 'approve')
        assert scene.responses(scene.confirm(first, True))[-1] == {'status': 'paid'}
        assert scene.ran == [500]
        assert world.ops(client) == [f'{scene.session}:call-1']

    def test_a_confirmation_alone_lets_nothing_run(self, world: Any) -> None:
        client = world.client('asked', approval_timeout=0.5)
        scene = AdkScene(client)
        first = scene.send(types.Part(text='pay'))
        assert 'nobody has decided on approval' in str(scene.responses(scene.confirm(first, True))[-1])
        assert scene.ran == []

    def test_a_rejected_confirmation_withdraws_the_request(self, world: Any) -> None:
        client = world.client('asked')
        scene = AdkScene(client)
        first = scene.send(types.Part(text='pay'))
        approval_id = world.gateway.pending(client.agent.agent_id)['id']
        assert 'rejected by a person' in str(scene.responses(scene.confirm(first, False))[-1])
        assert scene.ran == []
        assert client.wait_approval(approval_id, 1).state == 'cancelled'
