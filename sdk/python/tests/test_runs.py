"""Runs, guards and approvals against the real gateway, with operators who step in."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from real import ADMIN_KEY, RealGateway, eventually

from svc_gateway import ActionDeniedError, AgentClient, AsyncAgentClient, OpTerminatedError

Connect = Callable[..., AgentClient]


def completion(gateway: RealGateway, op_id: str) -> dict[str, Any]:
    found = eventually(lambda: [each for each in gateway.logged(op_id) if each['event_type'] == 'OpCompleted'])
    payload: dict[str, Any] = found[0]['payload']
    return payload


def test_a_run_ends_as_a_success(connect: Connect, gateway: RealGateway) -> None:
    with connect().run('tool.call', 'web') as op:
        assert op.state == 'running'
    assert completion(gateway, op.op_id)['outcome'] == 'success'


def test_what_the_body_raises_comes_through_and_ends_it_as_failed(connect: Connect, gateway: RealGateway) -> None:
    with pytest.raises(KeyError), connect().run('tool.call') as op:
        raise KeyError('no such page')
    payload = completion(gateway, op.op_id)
    assert (payload['outcome'], payload['error']) == ('failure', "'no such page'")


def test_a_denied_body_does_not_run(connect: Connect) -> None:
    ran = []

    @connect().run('danger')
    def body() -> None:
        ran.append(1)

    with pytest.raises(ActionDeniedError, match='danger is denied: too dangerous') as caught:
        body()
    assert (caught.value.cause, ran) == ('rule', [])


def test_an_inner_run_belongs_to_the_trace_of_the_outer(connect: Connect) -> None:
    client = connect()
    with client.run('tool.call') as outer:
        with client.run('tool.call') as inner:
            assert inner.trace_id == outer.trace_id
        assert client.check('tool.call').trace_id == outer.trace_id
    assert client.check('tool.call').trace_id != outer.trace_id


def test_a_decorated_function_is_an_operation_each_time(connect: Connect) -> None:
    client = connect()

    @client.run('tool.call', 'sum')
    def add(one: int, other: int) -> int:
        """Adds."""
        return one + other

    assert (add(1, 2), add(3, other=4)) == (3, 7)
    assert (add.__name__, add.__doc__) == ('add', 'Adds.')


def test_the_mistaken_kind_of_function_is_refused(connect: Connect) -> None:
    async def search() -> None: ...

    with pytest.raises(TypeError, match='AsyncAgentClient'):
        connect().guard('search', search)
    with pytest.raises(TypeError, match='AsyncAgentClient'):
        connect().run('tool.call')(search)


def test_guard_checks_arguments_and_edits_them(connect: Connect) -> None:
    notices: list[str] = []
    client = connect(on_notice=lambda notice: notices.append(notice.message))

    @client.guard('refund', action='refund')
    def refund(amount: int, *, card: dict, **more: object) -> dict:
        return {'amount': amount, 'card': card, 'iban': 'DE00', 'more': more}

    assert refund(500, card={'number': '4111', 'name': 'Ada'}, note='x') == {
        'amount': 100,
        'card': {'number': '[redacted]', 'name': 'Ada'},
        'iban': '[redacted]',
        'more': {'note': 'x'},
    }
    assert notices == ['a refund']


def test_a_block_that_ignores_obligations_does_not_run(connect: Connect) -> None:
    client = connect()
    with pytest.raises(ActionDeniedError) as caught, client.run('refund', attributes={'amount': 500}):
        raise AssertionError('the body ran')
    assert caught.value.cause == 'obligation'
    types = ['cap', 'redact', 'notify']
    with client.run('refund', attributes={'amount': 500}, supported_obligations=types) as op:
        assert op.attributes == {'amount': 100}
        assert op.edited({'iban': 'DE00'}) == {'iban': '[redacted]'}


def test_a_pending_run_waits_and_runs_once(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    ran: list[int] = []

    @client.guard('pay', action='pay')
    def pay(amount: int) -> str:
        ran.append(amount)
        return 'paid'

    with ThreadPoolExecutor(1) as threads:
        paying = threads.submit(pay, 5)
        asked = gateway.pending(client.agent.agent_id)
        assert (asked['attributes'], ran) == ({'amount': 5}, [])
        gateway.decide(asked['id'], 'approve')
        assert paying.result(20) == 'paid'
    assert ran == [5]


def test_a_pending_run_that_people_deny_does_not_run(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    with ThreadPoolExecutor(1) as threads:
        paying = threads.submit(client.guard('pay', lambda: 'paid', action='pay'))
        gateway.decide(gateway.pending(client.agent.agent_id)['id'], 'deny', 'not today')
        with pytest.raises(ActionDeniedError) as caught:
            paying.result(20)
    assert caught.value.cause == 'approval'
    assert 'not today' in caught.value.reason


def test_nobody_decides_in_time(connect: Connect) -> None:
    client = connect(approval_timeout=0.5)
    with pytest.raises(ActionDeniedError, match=r'nobody has decided on approval .* within 0\.5 s') as caught:
        client.guard('pay', lambda: 'paid', action='pay')()
    assert caught.value.cause == 'approval'
    assert caught.value.approval_id is not None


def test_check_and_wait_approval_in_steps(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    asked = {'trace_id': f'order-{client.agent.agent_id}', 'span_id': 'payment'}
    answer = client.check('pay', **asked)
    assert answer.decision == 'pending' and answer.approval_id is not None
    assert client.wait_approval(answer.approval_id, 0.2).state == 'pending'
    gateway.decide(answer.approval_id, 'approve', 'fine')
    decided = client.wait_approval(answer.approval_id)
    assert (decided.state, decided.reason) == ('approved', 'fine')
    assert client.check('pay', **asked).allowed
    client.complete(answer.op_id, cost_usd=0.5)


def test_an_approval_can_be_withdrawn(connect: Connect) -> None:
    client = connect()
    answer = client.check('pay')
    assert answer.approval_id is not None
    assert client.cancel_approval(answer.approval_id).state == 'cancelled'


def test_a_pause_holds_the_body_until_it_is_resumed(connect: Connect, gateway: RealGateway) -> None:
    steps: list[str] = []

    def operate(op_id: str) -> None:
        gateway.operate(op_id, 'pause')
        steps.append('paused')
        time.sleep(0.6)
        steps.append('resumed')
        gateway.operate(op_id, 'resume')

    with connect().run('tool.call') as op:
        operator = threading.Thread(target=operate, args=(op.op_id,))
        operator.start()
        eventually(lambda: steps)
        time.sleep(0.15)
        op.checkpoint()
        steps.append('went on')
        operator.join()
    assert steps == ['paused', 'resumed', 'went on']


def test_a_terminated_body_stops_at_a_checkpoint(connect: Connect, gateway: RealGateway) -> None:
    with pytest.raises(OpTerminatedError) as caught, connect().run('tool.call') as op:
        gateway.operate(op.op_id, 'terminate')
        time.sleep(0.15)
        op.checkpoint()
        raise AssertionError('it went on')
    assert caught.value.op_id == op.op_id


def test_a_result_of_a_terminated_operation_is_withheld(connect: Connect, gateway: RealGateway) -> None:
    client = connect(poll_interval=60)

    @client.run('tool.call', trace_id=f't-{client.agent.agent_id}', span_id='s')
    def body() -> str:
        gateway.operate(f't-{client.agent.agent_id}:s', 'terminate')
        return 'a secret'

    with pytest.raises(OpTerminatedError):
        body()


def test_terminating_the_outer_operation_stops_the_inner(connect: Connect, gateway: RealGateway) -> None:
    client = connect()
    with pytest.raises(OpTerminatedError) as caught, client.run('tool.call') as outer:
        with client.run('tool.call') as inner:
            gateway.operate(outer.op_id, 'terminate')
            time.sleep(0.15)
            inner.checkpoint()
    assert caught.value.op_id == outer.op_id
    assert completion(gateway, inner.op_id)['outcome'] == 'failure'


def test_a_paused_operation_is_completed_once_it_is_resumed(connect: Connect, gateway: RealGateway) -> None:
    client = connect(poll_interval=0.1)
    with client.run('tool.call') as op:
        gateway.operate(op.op_id, 'pause')
        threading.Timer(0.5, gateway.operate, (op.op_id, 'resume')).start()
        began = time.monotonic()
    assert time.monotonic() - began >= 0.4
    assert completion(gateway, op.op_id)['outcome'] == 'success'


def test_signals_arrive_by_grpc_where_it_is_installed(connect: Connect, gateway: RealGateway) -> None:
    pytest.importorskip('grpc')
    signals: list[str] = []
    client = connect(grpc_address=gateway.grpc, poll_interval=60, on_signal=lambda each: signals.append(each.signal))
    with pytest.raises(OpTerminatedError), client.run('tool.call') as op:
        eventually(lambda: client._control.is_connected)
        gateway.operate(op.op_id, 'pause')
        eventually(lambda: op.state == 'paused')
        threading.Timer(0.3, gateway.operate, (op.op_id, 'resume')).start()
        op.checkpoint()
        assert op.state == 'running'
        gateway.operate(op.op_id, 'terminate')
        eventually(lambda: op.state == 'terminated')
        op.checkpoint()
    assert signals == ['pause', 'resume', 'terminate']


@pytest.mark.parametrize('use_httpx', [False, True])
def test_the_same_for_asyncio(gateway: RealGateway, use_httpx: bool) -> None:
    if use_httpx:
        pytest.importorskip('httpx')

    async def main() -> None:
        agent = f'acme/python/async-{use_httpx}'
        async with AsyncAgentClient(
            gateway.url, agent, api_key=ADMIN_KEY, use_httpx=use_httpx, poll_interval=0.1
        ) as client:
            assert (await client.check('danger')).cause == 'rule'
            answers = await asyncio.gather(*(client.check('tool.call', str(at)) for at in range(50)))
            assert {answer.decision for answer in answers} == {'allow'}

            @client.guard
            async def search(query: str) -> str:
                await asyncio.sleep(0)
                return query.upper()

            assert await search('a') == 'A'
            with pytest.raises(ActionDeniedError):
                async with client.run('danger'):
                    raise AssertionError('the body ran')
            with pytest.raises(OpTerminatedError):
                async with client.run('tool.call') as op:
                    await asyncio.to_thread(gateway.operate, op.op_id, 'terminate')
                    await asyncio.sleep(0.15)
                    await op.checkpoint()

            @client.guard('pay', action='pay')
            async def pay() -> str:
                return 'paid'

            paying = asyncio.create_task(pay())
            asked = await asyncio.to_thread(gateway.pending, client.agent.agent_id)
            await asyncio.to_thread(gateway.decide, asked['id'], 'approve')
            assert await paying == 'paid'

    asyncio.run(main())


def test_a_cancelled_task_does_not_wait_for_the_gateway(gateway: RealGateway) -> None:
    async def main() -> None:
        async with AsyncAgentClient(gateway.url, 'acme/python/cancel', api_key=ADMIN_KEY) as client:
            waiting = asyncio.create_task(client.guard('pay', _nothing, action='pay')())
            await asyncio.to_thread(gateway.pending, 'cancel')
            began = time.monotonic()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert time.monotonic() - began < 1
            ops: list[str] = []

            async def body() -> None:
                async with client.run('tool.call') as op:
                    ops.append(op.op_id)
                    await asyncio.sleep(60)

            running = asyncio.create_task(body())
            while not ops:
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await asyncio.to_thread(completion, gateway, ops[0]))['outcome'] == 'failure'

    asyncio.run(main())


async def _nothing() -> None: ...
