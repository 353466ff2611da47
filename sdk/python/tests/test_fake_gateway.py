"""The fake gateway of `svc_gateway.testing`, as the tests of an agent use it."""

import threading

import pytest

from svc_gateway import ActionDeniedError, OpTerminatedError
from svc_gateway.testing import FakeGateway


def test_it_denies_what_no_rule_allows(fake: FakeGateway) -> None:
    answer = fake.client().check('tool.call', 'web_search')
    assert (answer.decision, answer.cause) == ('deny', 'no_rule')


def test_deny_wins_then_approval_then_allow(fake: FakeGateway) -> None:
    fake.allow('tool.call', '*')
    fake.require_approval('tool.call', 'pay*')
    fake.deny('tool.call', 'pay_all', reason='never', remedy='pay one by one')
    client = fake.client()
    assert client.check('tool.call', 'web').decision == 'allow'
    assert client.check('tool.call', 'pay_one').decision == 'pending'
    denied = client.check('tool.call', 'pay_all')
    assert (denied.decision, denied.reason, denied.remedy) == ('deny', 'never', 'pay one by one')


def test_an_approved_run_runs_once(fake: FakeGateway) -> None:
    fake.require_approval('tool.call', 'pay')
    client = fake.client()
    threading.Thread(target=fake.approve).start()
    assert client.guard('pay', lambda amount: amount)(5) == 5
    assert [approval.state for approval in fake.approvals] == ['used']
    assert fake.completed[0]['outcome'] == 'OUTCOME_SUCCESS'


def test_a_refused_run_says_why(fake: FakeGateway) -> None:
    fake.require_approval('tool.call', 'pay')
    threading.Thread(target=fake.refuse, kwargs={'reason': 'not today'}).start()
    with pytest.raises(ActionDeniedError, match='not today') as caught:
        fake.client().guard('pay', lambda: None)()
    assert caught.value.cause == 'approval'


def test_operators_can_be_played(fake: FakeGateway) -> None:
    fake.allow('*')
    with pytest.raises(OpTerminatedError), fake.client().run('tool.call') as op:
        fake.terminate(op.op_id)


def test_it_keeps_no_credentials(fake: FakeGateway) -> None:
    fake.allow('*')
    with fake.client().run('tool.call') as op:
        op.record_usage(0.5, usage_id='u1')
        op.record_usage(0.5, usage_id='u1')
    assert [each['usageId'] for each in fake.usage] == ['u1']
    assert 'credentialToken' not in {**fake.checks[0], **fake.completed[0], **fake.usage[0]}
