"""Checks against the real gateway: answers, causes, retries, outages and credentials."""

import math
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from real import ADMIN_KEY, RealGateway, eventually

from svc_gateway import Action, ActionDeniedError, AgentClient, ClientClosedError, GatewayError

Connect = Callable[..., AgentClient]


def test_an_allow_says_where_it_comes_from(connect: Connect) -> None:
    answer = connect().check('tool.call', 'web_search', attributes={'q': 'ü'}, trace_id='t-allow', span_id='s')
    assert (answer.decision, answer.allowed) == ('allow', True)
    assert (answer.policy, answer.rule_id, answer.op_id) == ('p', 'open', 't-allow:s')
    assert answer.op_state == 'running'
    assert answer.audit_id is not None and answer.audit_id > 0
    assert answer.cause is None


def test_a_deny_has_a_cause(connect: Connect) -> None:
    answer = connect().check('danger')
    assert (answer.decision, answer.cause, answer.rule_id) == ('deny', 'rule', 'no')
    assert answer.reason == 'too dangerous (rule no of policy p)'


def test_a_budget_deny_says_whose_and_until_when(connect: Connect) -> None:
    with pytest.raises(ActionDeniedError) as caught, connect().run('llm.call', estimated_cost_usd=60):
        raise AssertionError('the body ran')
    denied = caught.value
    assert (denied.cause, denied.tier, denied.period) == ('budget', 'agent', 'daily')
    assert denied.resets_at is not None and denied.resets_at > datetime.now(timezone.utc)


def test_a_batch_is_answered_in_order(connect: Connect) -> None:
    answers = connect().batch([Action('a'), {'action': 'danger'}, Action('pay', attributes={'n': 1})])
    assert [answer.decision for answer in answers] == ['allow', 'deny', 'pending']
    assert len({answer.op_id for answer in answers}) == 3


def test_a_dry_run_begins_nothing(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    assert client.check('tool.call', trace_id='t-dry', span_id='s', dry_run=True).allowed
    with pytest.raises(GatewayError) as caught:
        client.complete('t-dry:s')
    assert caught.value.code == 'not_found'


@pytest.mark.parametrize('attributes', [{'n': math.nan}, {'s': '\ud800'}, {'o': object()}, {'d': {1, 2}}])
def test_what_json_cannot_hold_is_a_type_error(connect: Connect, attributes: dict) -> None:
    with pytest.raises(TypeError, match='must be JSON'):
        connect().check('tool.call', attributes=attributes)


def test_malformed_ids_are_refused(connect: Connect) -> None:
    with pytest.raises(GatewayError) as caught:
        connect().check('tool.call', trace_id='a:b')
    assert (caught.value.code, caught.value.fault) == ('invalid_argument', 'invalid_argument')


def test_a_wrong_token_is_denied(gateway: RealGateway) -> None:
    with AgentClient(gateway.url, 'acme/python/nobody', 'svcagent_wrong') as client:
        assert client.check('tool.call').cause == 'credential'
        with pytest.raises(GatewayError) as caught:
            client.record_usage(0.1)
        assert caught.value.code == 'unauthenticated'


def test_a_wrong_key_is_refused(gateway: RealGateway) -> None:
    with AgentClient(gateway.url, 'acme/python/nobody', api_key='svc_wrong') as client:
        for _ in range(2):
            with pytest.raises(GatewayError, match='cannot register the agent') as caught:
                client.check('tool.call')
            assert caught.value.code == 'unauthenticated'


def test_a_token_that_was_replaced_is_renewed_once(connect: Connect) -> None:
    first = connect()
    assert first.check('tool.call').allowed
    with AgentClient(first.url, first.agent, api_key=ADMIN_KEY) as second:
        assert second.check('tool.call').allowed
        assert first.check('tool.call').allowed  # takes the token back
        assert second.check('tool.call').allowed  # and once more
        assert first.check('tool.call').cause == 'credential'  # two processes that take turns are told


def test_nobody_listens_means_no(dead_url: str) -> None:
    with AgentClient(dead_url, 'a/b/c', 'token', outage_timeout=0.3) as client:
        began = time.monotonic()
        answer = client.check('tool.call')
        assert (answer.decision, answer.unreachable, answer.cause) == ('deny', True, None)
        assert 'the connection was refused' in answer.reason
        assert 0.2 < time.monotonic() - began < 3
        began = time.monotonic()
        assert client.check('tool.call').unreachable  # a gateway that is lost is not waited for
        assert time.monotonic() - began < 0.2
        with pytest.raises(ActionDeniedError) as caught, client.run('tool.call'):
            raise AssertionError('the body ran')
        assert caught.value.unreachable
        assert [each.decision for each in client.batch([Action('a'), Action('b')])] == ['deny', 'deny']


def test_on_unreachable_allow_lets_the_body_run(dead_url: str) -> None:
    options: dict[str, Any] = {'on_unreachable': 'allow', 'outage_timeout': 0.0, 'close_timeout': 0.2}
    with AgentClient(dead_url, 'a/b/c', 'token', **options) as client, client.run('tool.call') as op:
        assert op.answer.unreachable


def test_a_restart_goes_unnoticed_and_ends_are_reported(tmp_path: Path) -> None:
    real = RealGateway(tmp_path / 'gw')
    client = AgentClient(real.url, 'acme/python/restart', api_key=ADMIN_KEY, outage_timeout=20, check_timeout=30)
    try:
        assert client.check('tool.call').allowed
        real.stop()
        timer = threading.Timer(0.5, real.start)
        timer.start()
        assert client.check('tool.call').allowed
        timer.join()
    finally:
        client.close()
        real.stop()


def test_what_ends_during_an_outage_is_reported_later(tmp_path: Path) -> None:
    real = RealGateway(tmp_path / 'gw', SVC_AUDIT_FSYNC='always')
    client = AgentClient(real.url, 'acme/python/away', api_key=ADMIN_KEY, outage_timeout=0.2, on_warning=print)
    try:
        with client.run('tool.call') as op:
            real.process.send_signal(19)  # SIGSTOP: it does not answer any more
            client._core.reach.failed()
            client._core.settings.__dict__['call_timeout'] = 0.5
        assert op.state == 'running'
        real.process.send_signal(18)
        ended = eventually(lambda: [each for each in real.logged(op.op_id) if each['event_type'] == 'OpCompleted'])
        assert ended[0]['payload']['outcome'] == 'success'
    finally:
        real.process.send_signal(18)
        client.close()
        real.stop()


def test_a_gateway_that_cannot_record_denies_whatever_on_unreachable_says(fake_busy: str) -> None:
    with AgentClient(fake_busy, 'a/b/c', 'token', on_unreachable='allow', check_timeout=0.5) as client:
        answer = client.check('tool.call')
        assert (answer.decision, answer.unreachable, answer.reason) == ('deny', False, 'too much at once')


@pytest.fixture
def fake_busy() -> Any:
    """Always overloaded."""
    from svc_gateway import testing

    gateway = testing.FakeGateway()

    def busy(*_args: object) -> dict:
        raise testing._Refusal(429, 'resource_exhausted', 'overloaded', 'too much at once')

    gateway._answer = busy  # type: ignore[method-assign]
    yield gateway.url
    gateway.close()


def test_a_closed_client_takes_no_calls(connect: Connect) -> None:
    client = connect()
    client.close()
    with pytest.raises(ClientClosedError):
        client.check('tool.call')
    with pytest.raises(ClientClosedError):
        client.run('tool.call')
    with pytest.raises(ClientClosedError):
        client.complete('t:s')


def test_usage_with_an_id_counts_once(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    for _ in range(3):
        assert client.record_usage(1.0, usage_id='same').status == 'ok'
    over = client.record_usage(49.5)
    assert (over.status, over.tier, over.period) == ('limit_exceeded', 'agent', 'daily')


def test_usage_is_either_money_or_tokens(connect: Connect) -> None:
    client = connect()
    for wrong in ({}, {'cost_usd': 1, 'model': 'gpt-4o'}, {'model': 'gpt-4o', 'input_tokens': -1}, {'cost_usd': '1'}):
        with pytest.raises(TypeError):
            client.record_usage(**wrong)
