"""LangChain's agent with a scripted model."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('langchain')

from contract import Contract, Scene
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from svc_gateway import AgentClient
from svc_gateway.langchain import SvcMiddleware


class Model(GenericFakeChatModel):
    def bind_tools(self, _tools: Any, **_options: Any) -> Model:
        return self


class LangChainScene(Scene):
    def __init__(self, client: AgentClient, *, keeps: bool = False, asynchronous: bool = False, **options: Any) -> None:
        super().__init__()
        self.asynchronous = asynchronous

        @tool
        def pay(amount: int) -> str:
            """Pays."""
            return self.pay(amount)

        call = {'name': 'pay', 'args': {'amount': 500}, 'id': 'call-1'}
        usage = {'input_tokens': 10, 'output_tokens': 5, 'total_tokens': 15}
        meta = {'model_name': 'scripted-1'}
        script = [AIMessage('', tool_calls=[call], usage_metadata=usage, response_metadata=meta), AIMessage('done')]
        self.agent = create_agent(
            Model(messages=iter(script)),
            [pay],
            middleware=[SvcMiddleware(client, **options)],
            checkpointer=InMemorySaver() if keeps else None,
        )
        self.config: Any = {'configurable': {'thread_id': f'thread-{client.agent.agent_id}'}}

    def invoke(self, given: Any = None) -> Any:
        given = given or {'messages': [('user', 'pay')]}
        if self.asynchronous:
            return asyncio.run(self.agent.ainvoke(given, self.config))
        return self.agent.invoke(given, self.config)

    def message(self, result: Any) -> ToolMessage:
        return next(each for each in result['messages'] if isinstance(each, ToolMessage))

    def run(self) -> str:
        return str(self.message(self.invoke()).content)


class TestLangChain(Contract):
    make = LangChainScene
    raises = True

    def test_an_approval_interrupts_and_the_approved_tool_runs_once(self, world: Any) -> None:
        client = world.client('asked')
        scene = LangChainScene(client, keeps=True)
        asked = scene.invoke()['__interrupt__'][0]
        assert asked.value['type'] == 'tool_approval'
        assert asked.value['args'] == {'amount': 500}
        # Resuming the graph decides nothing: people do, at the gateway.
        again = scene.invoke(Command(resume={asked.id: {'type': 'approve'}}))['__interrupt__'][0]
        assert (scene.ran, again.value['approval_id']) == ([], asked.value['approval_id'])
        world.gateway.decide(asked.value['approval_id'], 'approve')
        result = scene.invoke(Command(resume={again.id: {'type': 'approve'}}))
        assert (scene.ran, scene.message(result).content) == ([500], 'paid')
        # The replays of the step have asked under the same ids.
        assert world.ops(client) == [f'thread-{client.agent.agent_id}:call-1']

    def test_a_denied_approval_is_read_by_the_model(self, world: Any) -> None:
        scene = LangChainScene(world.client('asked'), keeps=True)
        asked = scene.invoke()['__interrupt__'][0]
        world.gateway.decide(asked.value['approval_id'], 'deny', 'not today')
        message = scene.message(scene.invoke(Command(resume={asked.id: {'type': 'approve'}})))
        assert (scene.ran, message.status) == ([], 'error')
        assert 'not today' in message.content

    def test_a_rejected_interrupt_withdraws_the_request(self, world: Any) -> None:
        client = world.client('asked')
        scene = LangChainScene(client, keeps=True)
        asked = scene.invoke()['__interrupt__'][0]
        reject = Command(resume={asked.id: {'type': 'reject', 'message': 'no'}})
        message = scene.message(scene.invoke(reject))
        assert (scene.ran, message.content, message.status) == ([], 'no', 'error')
        assert client.wait_approval(asked.value['approval_id'], 1).state == 'cancelled'

    def test_edited_arguments_are_checked_anew(self, world: Any) -> None:
        client = world.client('asked')
        scene = LangChainScene(client, keeps=True)
        asked = scene.invoke()['__interrupt__'][0]
        edit = {'type': 'edit', 'edited_action': {'name': 'pay', 'args': {'amount': 5}}}
        again = scene.invoke(Command(resume={asked.id: edit}))['__interrupt__'][0]
        assert again.value['args'] == {'amount': 5}
        assert again.value['approval_id'] != asked.value['approval_id']
        world.gateway.decide(again.value['approval_id'], 'approve')
        scene.invoke(Command(resume={again.id: {'type': 'approve'}}))
        assert scene.ran == [5]


class AsyncLangChainScene(LangChainScene):
    def __init__(self, client: AgentClient, **options: Any) -> None:
        super().__init__(client, asynchronous=True, **options)


class TestLangChainAsync(Contract):
    make = AsyncLangChainScene
    raises = True


def test_the_tutorial_is_denied_and_the_model_reads_why(
    world: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    page = (Path(__file__).parents[4] / 'docs' / 'tutorials.md').read_text(encoding='utf-8')
    sample = re.search(r'^```python\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert sample is not None
    called: list[Any] = []

    class Reader(Model):
        def _generate(self, messages: Any, *rest: Any, **options: Any) -> Any:
            called.append(messages)
            return super()._generate(messages, *rest, **options)

    def scripted(_model: str, tools: Any, **options: Any) -> Any:
        call = {'name': 'pay', 'args': {'amount': 500}, 'id': 'call-1'}
        script = [AIMessage('', tool_calls=[call]), AIMessage('done')]
        return create_agent(Reader(messages=iter(script)), tools, **options)

    client = world.client('denied')
    monkeypatch.setattr('langchain.agents.create_agent', scripted)
    monkeypatch.setattr('svc_gateway.AgentClient', lambda **_options: client)
    exec(compile(sample[1], 'tutorials.md', 'exec'), {'__name__': 'tutorial'})
    assert capsys.readouterr().out == 'done\n'
    assert 'too dangerous' in str(called[1])
