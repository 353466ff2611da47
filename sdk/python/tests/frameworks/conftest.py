"""The common part of the tests of all adapters: agents with a policy of their own at the real gateway."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real import ADMIN_KEY, COMMAND, RealGateway, eventually

from svc_gateway import AgentClient

#: What a team's agents may do with their only tool, `pay`.
POLICY = """
name: open
scope: team:acme/open
rules:
  - { id: open, actions: ["*"], effect: allow }
---
name: denied
scope: team:acme/denied
rules:
  - { id: no, actions: ["*"], effect: deny, reason: too dangerous }
---
name: asked
scope: team:acme/asked
rules:
  - { id: ask, actions: ["tool.call"], effect: require_approval, reason: money leaves }
---
name: capped
scope: team:acme/capped
rules:
  - id: cap
    actions: ["*"]
    effect: allow
    obligations: [{ id: little, type: cap, path: amount, max: 100 }]
"""

#: In US dollars per million tokens.
PRICES = """
models:
  "scripted*": { input_mtok: 1000, output_mtok: 2000 }
"""

_numbers = iter(range(1_000_000))


class World:
    def __init__(self, gateway: RealGateway) -> None:
        self.gateway = gateway
        self.was_held = False
        self._clients: list[AgentClient] = []

    def client(self, team: str, **options: Any) -> AgentClient:
        """`team`: open, denied, asked or capped."""
        agent = f'acme/{team}/{os.getpid()}-{next(_numbers)}'
        given = {'poll_interval': 0.1, 'on_warning': lambda _error: None, **options}
        client = AgentClient(self.gateway.url, agent, api_key=ADMIN_KEY, **given)
        self._clients.append(client)
        return client

    def decide_soon(self, client: AgentClient, verb: str) -> None:
        """Decides on the request of this agent, once there is one."""

        def decide() -> None:
            self.gateway.decide(self.gateway.pending(client.agent.agent_id)['id'], verb, 'not today')

        threading.Thread(target=decide, daemon=True).start()

    def ops(self, client: AgentClient) -> list[str]:
        """The ids of all operations that this agent has asked about."""
        found = self.gateway.call('GET', f'/api/v1/logs?agent_id={client.agent.agent_id}')['entries']
        return sorted({each['op_id'] for each in found if each['op_id']})

    def pause_and_resume(self, client: AgentClient) -> None:
        """Pauses the agent's operation now; resumes it half a second later, and notes that it was still there."""
        [op_id] = self.ops(client)
        self.gateway.operate(op_id, 'pause')
        self.was_held = False

        def resume() -> None:
            time.sleep(0.5)
            self.was_held = self.gateway.call('GET', f'/api/v1/ops/{op_id}')['state'].lower() == 'paused'
            self.gateway.operate(op_id, 'resume')

        threading.Thread(target=resume, daemon=True).start()

    def terminate(self, client: AgentClient) -> None:
        [op_id] = self.ops(client)
        self.gateway.operate(op_id, 'terminate')

    def spent(self, client: AgentClient) -> float:
        """Returns what this agent has spent today, in US dollars."""
        found = self.gateway.call('GET', '/api/v1/budgets?org_id=acme&per_page=1000')['budgets']
        return sum(each['daily']['spent_usd'] for each in found if each['agent_id'] == client.agent.agent_id)

    def outcome(self, client: AgentClient) -> str:
        """Returns the outcome of the only operation of the agent, once it has ended."""
        [op_id] = self.ops(client)
        ended = eventually(lambda: [each for each in self.gateway.logged(op_id) if each['event_type'] == 'OpCompleted'])
        outcome: str = ended[0]['payload']['outcome']
        return outcome

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture(scope='session')
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    if not Path(COMMAND).exists():
        pytest.skip('the gateway is not built: npm run build')
    folder = tmp_path_factory.mktemp('governed')
    (folder / 'prices.yaml').write_text(PRICES)
    real = RealGateway(folder, POLICY, SVC_PRICES_PATH=str(folder / 'prices.yaml'))
    yield real
    real.stop()


@pytest.fixture
def world(governed: RealGateway) -> Iterator[World]:
    made = World(governed)
    yield made
    made.close()


@pytest.fixture
def dead_client(dead_url: str) -> Iterator[AgentClient]:
    options: dict[str, Any] = {'outage_timeout': 0.1, 'close_timeout': 0.1, 'on_warning': lambda _error: None}
    with AgentClient(dead_url, 'acme/open/dead', 'token', **options) as client:
        yield client
