"""The gateways that tests run against: the package's own fake one, and the real one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from real import ADMIN_KEY, COMMAND, RealGateway

from svc_gateway import AgentClient
from svc_gateway.testing import FakeGateway


@pytest.fixture(scope='session')
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    if not COMMAND.exists():
        pytest.skip('the gateway is not built: npm run build')
    real = RealGateway(tmp_path_factory.mktemp('gateway'))
    yield real
    real.stop()


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    with FakeGateway() as gateway:
        yield gateway


@pytest.fixture
def dead_url() -> str:
    """Returns the URL of a port at which nobody listens."""
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return f'http://127.0.0.1:{sock.getsockname()[1]}'


_agents = iter(range(1_000_000))


@pytest.fixture
def connect(gateway: RealGateway) -> Iterator[Callable[..., AgentClient]]:
    """Clients of the real gateway, each with an agent of its own."""
    clients: list[AgentClient] = []

    def make(**options: Any) -> AgentClient:
        agent = f'acme/python/{os.getpid()}-{next(_agents)}'
        quiet: dict[str, Any] = {'on_warning': lambda _error: None, 'on_notice': lambda _notice: None}
        given = {'poll_interval': 0.1, **quiet, **options}
        clients.append(AgentClient(gateway.url, agent, api_key=ADMIN_KEY, **given))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
