"""The work of both clients: credentials, checks, approvals and reports, with their retries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from . import wire
from .errors import ClientClosedError, GatewayError
from .orphans import Orphans
from .settings import Settings
from .transport import Pool, _after_fork, answer_of
from .types import Action, Approval, CheckAnswer, Ended, OpState, Usage, UsageAnswer
from .waits import Io, ThreadIo, backoff, drive

#: The gateway has refused the request and would do so again. Any other error may pass.
VERDICTS = frozenset(
    {
        'unauthenticated',
        'permission_denied',
        'invalid_argument',
        'not_found',
        'already_exists',
        'failed_precondition',
        'unimplemented',
    }
)
#: The gateway cannot decide at the moment.
BUSY_FAULTS = frozenset(['unreachable_gateway', 'overloaded', 'rate_limited', 'audit_unavailable', 'store_unreachable'])
#: With these the gateway says that it has not even begun.
UNDONE_FAULTS = frozenset(['overloaded', 'rate_limited'])
#: A token that stopped working so soon was replaced by another process that runs as the same agent.
RENEW_AT_MOST_EVERY_SECONDS = 60.0
#: One question about an approval; the gateway answers after a minute at the latest.
ASK_SECONDS = 50.0
#: The gateway holds the answer about an operation that is paused.
DOOR_SECONDS = 60.0
MAX_HOMES = 10_000
MAX_BATCH = 1_000


def is_verdict(error: GatewayError) -> bool:
    return error.code in VERDICTS


def is_of_proxy(error: GatewayError) -> bool:
    """As from a proxy that finds no route to the gateway for a while: without the gateway's own error code."""
    return error.fault is None and error.code in ('unimplemented', 'permission_denied')


class Reach:
    """Whether the gateway can be reached, judging by the latest calls."""

    def __init__(self, outage_seconds: float) -> None:
        self._outage_seconds = outage_seconds
        self._failing_since: float | None = None

    def succeeded(self) -> None:
        self._failing_since = None

    def failed(self) -> None:
        if self._failing_since is None:
            self._failing_since = time.monotonic()

    @property
    def is_lost(self) -> bool:
        since = self._failing_since
        return since is not None and time.monotonic() - since >= self._outage_seconds


@dataclass
class _Inquiry:
    """A check, from its call to the end of its last attempt."""

    action: Action
    body: dict[str, Any]
    is_fresh: bool
    end: float
    #: An attempt was lost, and may have reached the gateway.
    is_uncertain: bool = False


class Core:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = Pool(settings.url, settings.ssl_context, settings.max_connections)
        self.thread_io = ThreadIo(self.pool)
        self.reach = Reach(settings.outage_timeout)
        self.orphans = Orphans(self._settle, settings.on_warning)
        self._token = settings.credential_token
        self._refusal: GatewayError | None = None
        self._renewed_at = -RENEW_AT_MOST_EVERY_SECONDS
        self._homes: dict[str, str] = {}
        self.is_closed = False
        self._renew()
        _after_fork(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._registering = threading.Lock()

    # --- the token that the agent presents ---

    async def token(self, io: Io, end: float) -> str:
        """The token, registering the agent first where needed. Raises GatewayError."""
        if self._token is not None:
            return self._token
        return await io.blocking(lambda: self._registered(end))

    def _registered(self, end: float) -> str:
        settings = self.settings
        if not self._registering.acquire(timeout=max(0.0, end - time.monotonic())):
            raise GatewayError('unavailable', 'the agent is not registered yet')
        try:
            if self._refusal is not None:
                raise self._refusal
            if self._token is not None:
                return self._token
            message: dict[str, Any] = {'agent': wire.agent_json(settings.agent)}
            if settings.parent is not None:
                message['parent'] = wire.agent_json(settings.parent)
            try:
                reply = self.pool.call(wire.REGISTER, message, max(0.001, end - time.monotonic()), settings.api_key)
            except GatewayError as error:
                if is_verdict(error) and not is_of_proxy(error):
                    error.args = (f'cannot register the agent: {error}',)
                    self._refusal = error
                raise
            self._token = str(reply.get('credentialToken', ''))
            return self._token
        finally:
            self._registering.release()

    def _give_up_token(self, stale: str, because: GatewayError) -> None:
        """Drops the token: the next attempt obtains another one. Raises where none can be obtained."""
        with self._lock:
            if self._token != stale:
                return
            if self.settings.api_key is None:
                raise because
            if time.monotonic() - self._renewed_at < RENEW_AT_MOST_EVERY_SECONDS:
                self._refusal = GatewayError(
                    'unauthenticated',
                    f'the token of {self.settings.agent} was replaced again right after it was renewed; '
                    'is another process running as the same agent?',
                )
                self._token = None
                raise self._refusal
            self._renewed_at = time.monotonic()
            self._token = None

    # --- where operations of a cluster live ---

    def _learn_home(self, op_id: str, reply: dict[str, Any]) -> None:
        home = reply.get('opHome')
        with self._lock:
            self._homes.pop(op_id, None)
            if home and reply.get('opState') != 'OP_STATE_TERMINATED':
                self._homes[op_id] = home
                if len(self._homes) > MAX_HOMES:
                    del self._homes[next(iter(self._homes))]

    def _forget_home(self, op_id: str) -> None:
        with self._lock:
            self._homes.pop(op_id, None)

    def _at_home(self, message: dict[str, Any], op_id: str) -> dict[str, Any]:
        home = self._homes.get(op_id)
        return message if home is None else {**message, 'opHome': home}

    # --- checks ---

    async def check(self, io: Io, action: Action, is_fresh: bool = False) -> CheckAnswer:
        """Raises GatewayError when the gateway finds the check malformed or refuses the API key."""
        body = wire.check_body(action, self.settings.agent)
        inquiry = _Inquiry(action, body, is_fresh, time.monotonic() + self.settings.check_timeout)
        try:
            return await self._until_answered(io, inquiry)
        except BaseException:
            # Its caller has gone, as when a task is cancelled, and the gateway may have allowed it.
            if inquiry.is_fresh and inquiry.is_uncertain:
                self.orphans.add(wire.op_id_of(body), Ended())
            raise

    async def _until_answered(self, io: Io, inquiry: _Inquiry) -> CheckAnswer:
        op_id = wire.op_id_of(inquiry.body)
        attempt = 0
        while True:
            if self.is_closed:
                raise ClientClosedError
            try:
                token = await self.token(io, inquiry.end)
            except GatewayError as error:
                answer = await self._after_trouble(io, inquiry, error, attempt)
                if answer is not None:
                    return answer
                attempt += 1
                continue
            message = self._at_home({**inquiry.body, 'credentialToken': token}, op_id)
            was_uncertain, inquiry.is_uncertain = inquiry.is_uncertain, True
            try:
                reply = await io.call(wire.CHECK, message, max(0.001, inquiry.end - time.monotonic()))
            except GatewayError as error:
                inquiry.is_uncertain = was_uncertain or self._may_be_done(error)
                answer = await self._after_trouble(io, inquiry, error, attempt)
                if answer is not None:
                    return answer
                attempt += 1
                continue
            inquiry.is_uncertain = False
            self.reach.succeeded()
            self._learn_home(op_id, reply)
            answer = wire.answer_in(reply, op_id)
            if answer.cause == 'credential' and attempt < 3 and self._can_replace(token):
                attempt += 1
                continue
            return answer

    @staticmethod
    def _may_be_done(error: GatewayError) -> bool:
        return (
            not error.unsent and error.fault in (None, 'unreachable_gateway', 'shutting_down') and not is_verdict(error)
        )

    def _can_replace(self, token: str) -> bool:
        """Whether the token was refused, and another can be had."""
        if self.settings.api_key is None:
            return False
        try:
            self._give_up_token(token, GatewayError('unauthenticated', 'the token is not valid'))
        except GatewayError:
            return False
        return True

    async def _after_trouble(self, io: Io, inquiry: _Inquiry, error: GatewayError, attempt: int) -> CheckAnswer | None:
        """Waits for the next attempt; returns the answer if there is no time for one, raises a refusal."""
        left = inquiry.end - time.monotonic()
        if error.fault in BUSY_FAULTS or (error.fault is None and error.code == 'resource_exhausted'):
            self.reach.succeeded()
            # With jitter, so that clients refused together do not all return together.
            wait = error.retry_after * (1 + backoff(0, 1, 1)) + backoff(attempt, 0.025, 1)
            if wait >= left:
                # The gateway was reached, so `on_unreachable` does not apply.
                return self._unanswered(inquiry, 'deny', str(error), unreachable=False)
            await io.sleep(wait)
            return None
        is_leaving = error.fault == 'shutting_down'
        if not is_leaving and (error.fault is not None or (is_verdict(error) and error.code != 'not_found')):
            self.reach.succeeded()
            raise error
        self.reach.failed()
        if error.code == 'deadline_exceeded' or self.reach.is_lost or left <= 0:
            because = (
                f'no answer within {self.settings.check_timeout:g} s'
                if error.code == 'deadline_exceeded'
                else str(error)
            )
            return self._unanswered(
                inquiry, self.settings.on_unreachable, f'cannot reach the gateway: {because}', unreachable=True
            )
        await io.sleep(min(left, backoff(attempt, 0.05, 0.5)))
        return None

    def _unanswered(self, inquiry: _Inquiry, decision: Any, reason: str, unreachable: bool) -> CheckAnswer:
        op_id = wire.op_id_of(inquiry.body)
        if inquiry.is_uncertain and inquiry.is_fresh and decision == 'deny':
            # The gateway may have allowed it, and nobody acts on it.
            self.orphans.add(op_id, Ended())
        inquiry.is_uncertain = False
        return CheckAnswer(decision, reason, op_id, unreachable=unreachable)

    async def state_of(self, io: Io, action: Action) -> tuple[OpState | None, bool]:
        """The state of an operation of one's own, by a dry run, and whether the gateway has answered."""
        try:
            answer = await self.check(io, replace(action, dry_run=True))
        except GatewayError:
            return None, False
        return answer.op_state, not answer.unreachable and answer.audit_id is not None

    async def batch(self, io: Io, actions: Sequence[Action]) -> list[CheckAnswer]:
        """Up to 1,000 checks in one call, answered in order."""
        if len(actions) > MAX_BATCH:
            raise ValueError(f'a batch has at most {MAX_BATCH} actions, not {len(actions)}')
        if not actions:
            return []
        bodies = [wire.check_body(each, self.settings.agent) for each in actions]
        end = time.monotonic() + self.settings.check_timeout
        attempt = 0
        whole = _Inquiry(actions[0], bodies[0], False, end)
        while True:
            if self.is_closed:
                raise ClientClosedError
            try:
                token = await self.token(io, end)
                requests = [self._at_home({**body, 'credentialToken': token}, wire.op_id_of(body)) for body in bodies]
                reply = await io.call(wire.BATCH, {'requests': requests}, max(0.001, end - time.monotonic()))
                break
            except GatewayError as error:
                answer = await self._after_trouble(io, whole, error, attempt)
                if answer is not None:
                    return [replace(answer, op_id=wire.op_id_of(body)) for body in bodies]
                attempt += 1
        self.reach.succeeded()
        replies = reply.get('responses') or []
        if len(replies) != len(bodies):
            raise GatewayError('internal', f'the gateway answered {len(replies)} of {len(bodies)} checks')
        return [self._batched(body, each) for body, each in zip(bodies, replies, strict=True)]

    def _batched(self, body: dict[str, Any], reply: dict[str, Any]) -> CheckAnswer:
        op_id = wire.op_id_of(body)
        if reply.get('error'):
            error = wire.error_in(reply['error'])
            return CheckAnswer('deny', str(error), op_id, error=error)
        self._learn_home(op_id, reply)
        return wire.answer_in(reply, op_id)

    # --- the agent's other calls: repeating one does no harm, so each is tried until it is answered ---

    async def _call(
        self,
        io: Io,
        method: str,
        message: dict[str, Any],
        *,
        gives_up_when_lost: bool = False,
        on_retry: Callable[[GatewayError], None] = lambda _error: None,
    ) -> dict[str, Any]:
        end = time.monotonic() + self.settings.call_timeout
        before: GatewayError | None = None
        attempt = 0
        own = {'agent': wire.agent_json(self.settings.agent)}
        while True:
            if self.is_closed:
                raise ClientClosedError
            token: str | None = None
            try:
                token = await self.token(io, end)
                reply = await io.call(
                    method, {**own, **message, 'credentialToken': token}, max(0.001, end - time.monotonic())
                )
                self.reach.succeeded()
                return reply
            except GatewayError as error:
                if error.code == 'unauthenticated' and token is not None:
                    self._give_up_token(token, error)
                    continue
                is_unanswered = error.fault is None and not is_verdict(error)
                self.reach.failed() if is_unanswered else self.reach.succeeded()
                wait = max(error.retry_after, backoff(attempt, 0.05, 2))
                # The earlier error says more than that the remaining time is over.
                cause = (before or error) if error.code == 'deadline_exceeded' else error
                is_final = is_verdict(error) or error.fault == 'payload_too_large'
                if is_final or (gives_up_when_lost and self.reach.is_lost) or time.monotonic() + wait >= end:
                    raise cause from None
                before = cause
                on_retry(error)
            await io.sleep(wait)
            attempt += 1

    async def post(self, io: Io, path: str, body: bytes) -> dict[str, Any]:
        """Another door of the gateway, with the agent's token as bearer, for at most a minute. Raises GatewayError."""
        end = time.monotonic() + self.settings.check_timeout
        attempt = 0
        while True:
            if self.is_closed:
                raise ClientClosedError
            try:
                token = await self.token(io, end)
                headers = {'Content-Type': 'application/json', 'Authorization': f'Bearer {token}'}
                post = partial(self.pool.post, path, body, headers, DOOR_SECONDS)
                status, got, answer = await io.blocking(post)
                read = answer_of(status, got, answer, self.settings.url)
                self.reach.succeeded()
                return read
            except GatewayError as error:
                is_busy = error.fault in BUSY_FAULTS
                if not is_busy and (error.fault is not None or is_verdict(error)):
                    raise
                if not is_busy:
                    self.reach.failed()
                wait = max(error.retry_after, backoff(attempt, 0.05, 0.5))
                if self.reach.is_lost or time.monotonic() + wait >= end:
                    raise GatewayError('unavailable', f'cannot reach the gateway: {error}') from error
            await io.sleep(wait)
            attempt += 1

    async def complete(self, io: Io, op_id: str, ended: Ended, *, gives_up_when_lost: bool = False) -> None:
        """Raises GatewayError."""
        may_be_done = False

        def note(error: GatewayError) -> None:
            nonlocal may_be_done
            may_be_done = may_be_done or error.fault not in UNDONE_FAULTS

        message = self._at_home(wire.completion_json(op_id, ended), op_id)
        try:
            await self._call(io, wire.COMPLETE, message, gives_up_when_lost=gives_up_when_lost, on_retry=note)
        except GatewayError as error:
            # An earlier attempt may have completed it, and only the answer was lost.
            if not may_be_done or error.fault != 'invalid_transition':
                raise
            if await self.state_of_op(io, op_id) != 'completing':
                raise
        self._forget_home(op_id)

    async def state_of_op(self, io: Io, op_id: str) -> OpState | None:
        trace_id, _, span_id = op_id.partition(':')
        state, _ = await self.state_of(io, Action('op.complete', trace_id=trace_id, span_id=span_id))
        return state

    async def record_usage(self, io: Io, usage: Usage, op_id: str | None, usage_id: str | None) -> UsageAnswer:
        """All attempts have the same usage id, so that it is counted once, however many of them arrive."""
        message = wire.usage_json(usage)
        message['usageId'] = wire.require_text(usage_id, 'usage_id') if usage_id is not None else wire.new_span_id()
        if op_id is not None:
            message = self._at_home({**message, 'opId': wire.require_text(op_id, 'op_id')}, op_id)
        return wire.usage_answer_in(await self._call(io, wire.RECORD_USAGE, message))

    async def acknowledge(self, io: Io, op_id: str, sequence: int) -> None:
        await self._call(io, wire.ACKNOWLEDGE, self._at_home({'opId': op_id, 'sequence': str(sequence)}, op_id))

    async def cancel_approval(self, io: Io, approval_id: str) -> Approval:
        reply = await self._call(
            io, wire.CANCEL_APPROVAL, {'approvalId': wire.require_text(approval_id, 'approval_id')}
        )
        return wire.approval_in(reply, approval_id)

    async def wait_approval(self, io: Io, approval_id: str, timeout: float) -> Approval:
        """The approval once it is not pending any more, or as it is after `timeout` seconds. Raises GatewayError."""
        wire.require_text(approval_id, 'approval_id')
        end = time.monotonic() + timeout
        last: Approval | None = None
        trouble: GatewayError | None = None
        attempt = 0
        while True:
            if self.is_closed:
                raise ClientClosedError
            pause = 0.0
            try:
                last = await self._ask_approval(io, approval_id, end) or last
                if last is not None and last.state != 'pending':
                    return last
            except GatewayError as error:
                if is_verdict(error) and error.code != 'unauthenticated':
                    raise
                trouble = error
                pause = error.retry_after + backoff(attempt, 0.1, 5)
            left = end - time.monotonic()
            if left <= 0:
                if last is None and trouble is not None:
                    raise trouble
                return last or Approval(approval_id, 'pending')
            # A gateway that answers at once must not be asked in a loop.
            await io.sleep(min(left, pause + backoff(attempt, 0.1, 2)))
            attempt += 1

    async def _ask_approval(self, io: Io, approval_id: str, end: float) -> Approval | None:
        """The state so far; None if only the time of this question is over."""
        seconds = max(0.001, min(ASK_SECONDS, end - time.monotonic()))
        token = await self.token(io, time.monotonic() + seconds)
        message = {'agent': wire.agent_json(self.settings.agent), 'credentialToken': token, 'approvalId': approval_id}
        try:
            reply = await io.call(wire.WAIT_APPROVAL, message, seconds)
        except GatewayError as error:
            if error.code == 'deadline_exceeded':
                return None
            if error.code == 'unauthenticated':
                self._give_up_token(token, error)
            raise
        self.reach.succeeded()
        return wire.approval_in(reply, approval_id)

    # --- operations that nobody works on any more ---

    def _settle(self, op_id: str, ended: Ended) -> bool:
        """Reports one. False when it has to be tried again."""
        io = self.thread_io
        try:
            drive(self.complete(io, op_id, ended, gives_up_when_lost=True))
        except ClientClosedError:
            return False
        except GatewayError as error:
            if error.code == 'failed_precondition':
                # Paused: it waits for the operator's next signal. Otherwise it is over.
                return drive(self.state_of_op(io, op_id)) in ('completing', 'terminated')
            if error.code == 'unauthenticated' or is_of_proxy(error) or not is_verdict(error):
                return False
            if error.code != 'not_found':
                self.settings.on_warning(error)
        return True

    def close(self) -> None:
        self.orphans.close(self.settings.close_timeout)
        self.is_closed = True
        self.thread_io.close()
        self.pool.close()
