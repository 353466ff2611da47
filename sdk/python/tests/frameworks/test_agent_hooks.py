"""agent-hooks: the interceptor in Microsoft Agent Framework, and against the published conformance vectors."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import pytest

pytest.importorskip('agent_framework')
pytest.importorskip('agent_hooks')

import agent_hooks
from agent_framework import Agent, create_agent_hooks_middleware, tool
from agent_hooks.ctk.harness import Scenario
from agent_hooks.ctk.reference import ReferenceHarness
from agent_hooks.ctk.runner import load_vectors
from contract import Contract, Scene
from test_agent_framework import Script

from svc_gateway import AgentClient
from svc_gateway.agent_hooks import ApprovalResolver, Interceptor


class HooksScene(Scene):
    def __init__(self, client: AgentClient) -> None:
        super().__init__()

        @tool(approval_mode='never_require')
        def pay(amount: int) -> str:
            """Pays."""
            return self.pay(amount)

        hooks = create_agent_hooks_middleware([Interceptor(client)], resolver=ApprovalResolver(client), timeout=60)
        self.agent = Agent(client=Script(), tools=[pay], middleware=[hooks])

    def run(self) -> str:
        response = asyncio.run(self.agent.run('pay'))
        contents = [content for message in response.messages for content in message.contents]
        found = next(content for content in contents if content.type == 'function_result')
        return f'{found.result} {found.exception or ""}'


class TestAgentHooks(Contract):
    make = HooksScene
    # The host writes what the model reads: of the verdict, the reason and the message.
    advice = '"reason": "rule"'
    terminated = 'an operator has terminated the operation'
    waiting: ClassVar[dict[str, Any]] = {}


class Recording:
    """The interceptor of the gateway, and what passes through it."""

    def __init__(self, inner: Interceptor) -> None:
        self._inner = inner
        self.seen: list[tuple[str, Any]] = []

    async def intercept(self, context: Any, /) -> Any:
        verdict = await self._inner.intercept(context)
        self.seen.append((context['interception_point'], verdict))
        return verdict


VECTORS = [vector for vector in load_vectors() if 'scenario' in vector]


def run(vector: dict[str, Any], client: AgentClient) -> tuple[Any, list[tuple[str, Any]]]:
    """The vector's scenario in the reference host, with the gateway in place of the scripted interceptors."""
    recording = Recording(Interceptor(client))
    harness = ReferenceHarness()
    mode = agent_hooks.EnforcementMode('enforce')
    harness.setup(Scenario.from_wire(vector['scenario']), [recording], ApprovalResolver(client), mode)
    try:
        return asyncio.run(harness.run()), recording.seen
    finally:
        harness.teardown()


class TestConformanceVectors:
    def test_there_are_vectors(self) -> None:
        assert len(VECTORS) > 40

    @pytest.mark.parametrize('vector', VECTORS, ids=[vector['id'] for vector in VECTORS])
    def test_each_context_gets_a_verdict_that_is_valid(self, world: Any, vector: dict[str, Any]) -> None:
        client = world.client('open')
        record, seen = run(vector, client)
        assert seen[0][0] == 'agent_startup'
        for point, verdict in seen:
            wire = verdict if isinstance(verdict, dict) else verdict.to_wire()
            agent_hooks.Verdict.from_wire(json.loads(json.dumps(wire)))
            assert wire['decision'] == 'allow', (point, wire)
        if 'host_error' not in json.dumps(vector):
            reasons = [str(each['verdict'].get('reason', '')) for each in record.records]
            assert not [reason for reason in reasons if reason.startswith('host_error:')]

    def test_a_deny_keeps_the_tool_of_a_vector_from_running(self, world: Any) -> None:
        with_tools = [each for each in VECTORS if 'pre_tool_call' in json.dumps(each.get('expect', {}))]
        assert with_tools
        for vector in with_tools:
            record, seen = run(vector, world.client('denied'))
            if any(point == 'pre_tool_call' for point, _ in seen):
                assert record.tool_invocations == []
