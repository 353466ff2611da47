"""CrewAI with a scripted model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

os.environ['CREWAI_DISABLE_TELEMETRY'] = 'true'
os.environ['CREWAI_TRACING_ENABLED'] = 'false'
os.environ['OTEL_SDK_DISABLED'] = 'true'
pytest.importorskip('crewai')

from contract import Contract, Scene
from crewai import Agent, BaseLLM, Crew, Task
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMCallCompletedEvent, LLMCallType
from crewai.tools import tool

from svc_gateway import AgentClient
from svc_gateway import crewai as adapter


class Script(BaseLLM):
    read: list[str] = []  # noqa: RUF012
    turn: int = 0

    def call(self, messages: Any, *_args: Any, **_options: Any) -> str:
        self.turn += 1
        crewai_event_bus.emit(
            self,
            LLMCallCompletedEvent(
                response='',
                call_type=LLMCallType.LLM_CALL,
                call_id=f'c{self.turn}',
                model='scripted-1',
                usage={'prompt_tokens': 10, 'completion_tokens': 5},
            ),
        )
        if self.turn == 1:
            return 'Thought: pay\nAction: pay\nAction Input: {"amount": 500}'
        self.read.append('\n'.join(str(each['content']) for each in messages))
        return 'Thought: I now know the final answer\nFinal Answer: done'

    def supports_function_calling(self) -> bool:
        return False


class CrewScene(Scene):
    installed: ClassVar[list[Any]] = []

    def __init__(self, client: AgentClient) -> None:
        super().__init__()
        self.installed.append(adapter.install(client))

        @tool('pay')
        def pay(amount: int) -> str:
            """Pays."""
            return self.pay(amount)

        self.llm = Script(model='scripted-1')
        agent = Agent(role='payer', goal='pay', backstory='pays', llm=self.llm, tools=[pay], max_iter=3)
        task = Task(description='pay', expected_output='done', agent=agent)
        self.crew = Crew(agents=[agent], tasks=[task])

    def run(self) -> str:
        self.crew.kickoff()
        return '\n'.join(self.llm.read)


@pytest.fixture(autouse=True)
def uninstalled() -> Iterator[None]:
    yield
    while CrewScene.installed:
        CrewScene.installed.pop()()


class TestCrewAi(Contract):
    make = CrewScene
    waiting: ClassVar[dict[str, Any]] = {}

    def test_a_mistake_in_the_hooks_blocks_the_tool(self, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        scene = CrewScene(world.client('open'))

        def broken(*_args: Any) -> None:
            raise RuntimeError('a mistake')

        monkeypatch.setattr(adapter._Hooks, '_begun', broken)
        scene.run()
        assert scene.ran == []
