"""The vectors that both SDKs run: sdk/vectors."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from real import ADMIN_KEY, COMMAND, ROOT, RealGateway, eventually

from svc_gateway import ActionDeniedError, AgentClient, GatewayError, Op, OpTerminatedError, Usage

FILES = sorted((ROOT / 'sdk' / 'vectors').glob('*.json'))
CASES = [(path.stem, case) for path in FILES for case in json.loads(path.read_text())['cases']]


class Raised(Exception):
    """The error that a body raises."""


class Actor:
    """Runs the steps of one case."""

    def __init__(self, gateway: RealGateway, client: AgentClient) -> None:
        self._gateway = gateway
        self._client = client

    def do(self, steps: list[dict[str, Any]], op: Op | None = None) -> None:
        for step in steps:
            [name] = step.keys() - {'expect', 'body', 'raises', 'logged', 'meanwhile'}
            # `_gateway` is the gateway itself.
            getattr(self, '_power' if name == 'gateway' else f'_{name}')(step, op)

    def _expect(self, wanted: dict[str, Any], got: dict[str, Any]) -> None:
        for name, value in wanted.items():
            # Values that differ each time are only looked for.
            is_any = value is True and name != 'unreachable'
            assert got[name] is not None if is_any else got[name] == value, name

    def _called(self, step: dict[str, Any], call: Any) -> None:
        wanted = step['expect']
        if 'error' in wanted:
            with pytest.raises(GatewayError) as caught:
                call()
            assert caught.value.code == wanted['error']
            assert wanted.get('fault') in (None, caught.value.fault)
            return
        answer = call()
        if answer is not None:
            got = asdict(answer)
            if 'obligations' in got:
                got['obligations'] = list(got['obligations'])
            self._expect(wanted, got)

    def _check(self, step: dict[str, Any], _op: Op | None) -> None:
        self._called(step, lambda: self._client.check(**step['check']))

    def _complete(self, step: dict[str, Any], _op: Op | None) -> None:
        ended = dict(step['complete'])
        if 'usage' in ended:
            ended['usage'] = Usage(**ended['usage'])
        self._called(step, lambda: self._client.complete(**ended))

    def _usage(self, step: dict[str, Any], _op: Op | None) -> None:
        self._called(step, lambda: self._client.record_usage(**step['usage']))

    def _run(self, step: dict[str, Any], _op: Op | None) -> None:
        ops: list[Op] = []

        def body(op: Op) -> None:
            ops.append(op)
            self.do(step.get('body', []), op)
            if 'raises' in step:
                raise Raised(step['raises'])

        beside = self._beside(step, None)
        got: dict[str, Any] = {'ends': 'returned'}
        try:
            self._client.run(**step['run']).body(body)
        except Raised:
            got['ends'] = 'raised'
        except ActionDeniedError as denied:
            got = {'ends': 'denied', 'cause': denied.cause, 'unreachable': denied.unreachable}
        except OpTerminatedError:
            got['ends'] = 'terminated'
        beside()
        self._expect(step['expect'], got)
        if 'logged' in step:
            op_id = ops[0].op_id
            ended = eventually(lambda: [e for e in self._gateway.logged(op_id) if e['event_type'] == 'OpCompleted'])
            assert ended[0]['payload']['outcome'] == step['logged']

    def _beside(self, step: dict[str, Any], op: Op | None) -> Any:
        """Begins what happens meanwhile; returns what waits for its end."""
        failures: list[BaseException] = []

        def work() -> None:
            try:
                self.do(step.get('meanwhile', []), op)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

        def wait() -> None:
            thread.join(60)
            assert not thread.is_alive() and not failures, failures

        return wait

    def _checkpoint(self, step: dict[str, Any], op: Op | None) -> None:
        assert op is not None
        beside = self._beside(step, op)
        began = time.monotonic()
        if step['checkpoint'] == 'raises':
            with pytest.raises(OpTerminatedError) as caught:
                op.checkpoint()
            raise caught.value
        op.checkpoint()
        assert time.monotonic() - began > 0.4
        beside()

    def _operator(self, step: dict[str, Any], op: Op | None) -> None:
        assert op is not None
        self._gateway.operate(op.op_id, step['operator'])

    def _asked(self, _step: dict[str, Any], _op: Op | None) -> None:
        self._gateway.pending(self._client.agent.agent_id)

    def _decide(self, step: dict[str, Any], _op: Op | None) -> None:
        self._gateway.decide(self._gateway.pending(self._client.agent.agent_id)['id'], step['decide'])

    def _power(self, step: dict[str, Any], _op: Op | None) -> None:
        if step['gateway'] != 'start':
            self._gateway.stop()
        if step['gateway'] == 'restart':
            threading.Timer(0.3, self._gateway.start).start()
        elif step['gateway'] == 'start':
            self._gateway.start()

    def _wait(self, step: dict[str, Any], _op: Op | None) -> None:
        time.sleep(step['wait'])

    def _fail(self, step: dict[str, Any], _op: Op | None) -> None:
        raise AssertionError(step['fail'])


@pytest.fixture(scope='module')
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RealGateway]]:
    if not Path(COMMAND).exists():
        pytest.skip('the gateway is not built: npm run build')
    started: dict[str, RealGateway] = {}
    for path in FILES:
        policy = json.loads(path.read_text())['policy']
        started[path.stem] = RealGateway(tmp_path_factory.mktemp(path.stem), policy)
    yield started
    for gateway in started.values():
        gateway.stop()


@pytest.mark.parametrize(('name', 'case'), CASES, ids=[f'{name}: {case["name"]}' for name, case in CASES])
def test_vector(gateways: dict[str, RealGateway], name: str, case: dict[str, Any]) -> None:
    options = {
        'poll_interval': 0.1,
        'approval_timeout': 60,
        'on_warning': lambda _error: None,
        **case.get('options', {}),
    }
    agent = f'acme/vectors/{name}-{CASES.index((name, case))}'
    client = AgentClient(gateways[name].url, agent, api_key=ADMIN_KEY, **options)
    try:
        Actor(gateways[name], client).do(case['steps'])
    finally:
        with suppress(GatewayError):
            client.close()
