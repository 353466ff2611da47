"""An operation while its body runs: what operators want of it, and how its end is reported."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from . import obligations, wire
from .control import Control
from .core import Core, is_of_proxy, is_verdict
from .errors import ActionDeniedError, ClientClosedError, GatewayError, OpTerminatedError
from .types import OBLIGATION_TYPES, Action, CheckAnswer, Ended, Notice, OpState, Usage, UsageAnswer
from .waits import Io

#: The body that is running here.
CURRENT: ContextVar[RunningOp | None] = ContextVar('svc_gateway_op', default=None)

#: Between two looks at the state that operators' signals have set.
STREAM_LOOK_SECONDS = 0.05
#: Between two questions about an approval that changed meanwhile.
RECHECK_SECONDS = 0.25


class ApprovalPending(Exception):
    """People have to decide first, and the caller does not wait for them here."""

    def __init__(self, answer: CheckAnswer) -> None:
        super().__init__(answer.reason)
        self.answer = answer


class RunningOp:
    """The operation whose body is running. Its methods of the same name wait in the client's own way."""

    def __init__(self, core: Core, control: Control, action: Action, parent: RunningOp | None) -> None:
        named = wire.named(action, parent.trace_id if parent is not None else None)
        self._core = core
        self._control = control
        self._action = named
        self._is_fresh = action.span_id is None
        self.parent = parent
        self.trace_id: str = named.trace_id or ''
        self.span_id: str = named.span_id or ''
        self.op_id = f'{self.trace_id}:{self.span_id}'
        self.state: OpState = 'pending'
        self.attributes: Mapping[str, Any] | None = action.attributes
        self._answer: CheckAnswer | None = None
        self._terminated_because = ''
        self._asked_at = -1.0
        #: Whether the signal that set the state still has to be acknowledged.
        self._unacknowledged: int | None = None

    @property
    def answer(self) -> CheckAnswer:
        """The gateway's answer that let it run."""
        if self._answer is None:
            raise RuntimeError('the operation has not begun')
        return self._answer

    # --- the beginning ---

    async def _begin(self, io: Io, waits: bool = True) -> None:
        """Raises ActionDeniedError or GatewayError; ApprovalPending where it is not to wait for people."""
        action = self._action
        supported = action.supported_obligations if action.supported_obligations is not None else OBLIGATION_TYPES
        self._action = replace(action, supported_obligations=supported)
        self._control.attach(self)
        try:
            answer = await self._admitted(io, waits)
            if answer.decision != 'allow':
                raise ActionDeniedError(action.action, action.resource, answer)
            self._answer = answer
            self.attributes = self._obliged(answer, action)
        except BaseException:
            self._control.detach(self)
            raise
        if self.state == 'pending':
            self.state = 'running'
        self._asked_at = time.monotonic()
        for message in obligations.notices_in(answer.obligations):
            self._core.settings.on_notice(Notice(message, self.op_id, action.action, action.resource))

    async def _admitted(self, io: Io, waits: bool) -> CheckAnswer:
        """The answer of the gateway, and that of people where it leaves the action to them."""
        core = self._core
        answer = await core.check(io, self._action, self._is_fresh)
        end = time.monotonic() + core.settings.approval_timeout
        rounds = 0
        while answer.decision == 'pending':
            if answer.approval_id is None:
                return _undecided(answer, 'the gateway names no approval to wait for')
            if not waits:
                raise ApprovalPending(answer)
            approval = await core.wait_approval(io, answer.approval_id, max(0.0, end - time.monotonic()))
            if approval.state == 'pending':
                waited = f'nobody has decided on approval {answer.approval_id} within'
                return _undecided(answer, f'{waited} {core.settings.approval_timeout:g} s')
            # The approved action may be used up, or changed, by now: then people are asked anew.
            if rounds > 0:
                await io.sleep(RECHECK_SECONDS)
            rounds += 1
            answer = await core.check(io, self._action, self._is_fresh)
        return answer

    def _obliged(self, answer: CheckAnswer, action: Action) -> Mapping[str, Any] | None:
        """The attributes that the body is to act on. Raises where nobody would do what the answer obliges to."""
        try:
            edited = obligations.edited_attributes(action.attributes, answer.obligations)
        except TypeError as error:
            raise self._unfulfilled(answer, action, str(error)) from error
        if edited is action.attributes or action.supported_obligations is not None:
            return edited
        raise self._unfulfilled(
            answer,
            action,
            'its obligations change the attributes, and supported_obligations does not say that the body uses '
            'op.attributes',
        )

    def _unfulfilled(self, answer: CheckAnswer, action: Action, reason: str) -> ActionDeniedError:
        # It was allowed, and nobody acts on it.
        self._core.orphans.add(self.op_id, Ended())
        denied = replace(answer, decision='deny', cause='obligation', reason=reason)
        return ActionDeniedError(action.action, action.resource, denied)

    # --- while it runs ---

    def obey(self, signal: str, sequence: int) -> bool:
        """Takes a signal from the control stream. Whether it is obeyed, and to be acknowledged, at once."""
        self._unacknowledged = None
        if self.state in ('terminated', 'completing'):
            return True
        if signal == 'terminate':
            self._terminate(f'operation {self.op_id} was terminated by an operator')
            return True
        self.state = 'paused' if signal == 'pause' else 'running'
        if signal == 'pause':
            self._unacknowledged = sequence
        return signal != 'pause'

    def _terminate(self, because: str) -> None:
        self.state = 'terminated'
        self._terminated_because = because

    def _raise_if_terminated(self) -> None:
        op: RunningOp | None = self
        while op is not None:
            if op.state == 'terminated':
                raise OpTerminatedError(op.op_id, op._terminated_because)
            op = op.parent

    async def _checkpoint(self, io: Io) -> None:
        """Waits while it or an outer operation is paused. Raises OpTerminatedError."""
        while True:
            paused: RunningOp | None = None
            op: RunningOp | None = self
            while op is not None:
                await op._look(io)
                if op.state == 'paused':
                    paused = op
                op = op.parent
            self._raise_if_terminated()
            if paused is None:
                return
            if self._core.is_closed:
                raise ClientClosedError
            await paused._acknowledge_pause(io)
            is_heard = self._control.is_connected
            await io.sleep(STREAM_LOOK_SECONDS if is_heard else self._core.settings.poll_interval)

    async def _acknowledge_pause(self, io: Io) -> None:
        sequence, self._unacknowledged = self._unacknowledged, None
        if sequence is not None:
            # A report that does not arrive is sent again when the stream opens anew.
            with contextlib.suppress(GatewayError):
                await self._core.acknowledge(io, self.op_id, sequence)

    async def _look(self, io: Io) -> None:
        """Asks the gateway if no signals arrive, at most once in `poll_interval` seconds."""
        is_due = time.monotonic() - self._asked_at >= self._core.settings.poll_interval
        if self.state == 'terminated' or self._control.is_connected or not is_due:
            return
        self._asked_at = time.monotonic()
        await self._ask(io)

    async def _ask(self, io: Io) -> None:
        state, is_answered = await self._core.state_of(io, self._action)
        if state == 'terminated':
            self._terminate(f'operation {self.op_id} was terminated by an operator')
        elif state in ('paused', 'running'):
            self.state = state
        elif state is None and is_answered:
            await self._announce(io)

    async def _announce(self, io: Io) -> None:
        """A gateway that has restarted does not know the operation, and is asked for it again."""
        try:
            answer = await self._core.check(io, self._action)
        except GatewayError:
            return
        if answer.unreachable:
            return
        if answer.decision == 'allow':
            self.state = 'running'
        elif answer.decision == 'pending':
            self.state = 'paused'  # people decide whether it may go on
        elif answer.op_state == 'terminated' or (answer.op_state is None and answer.audit_id is not None):
            self._terminate(f'operation {self.op_id} may not continue: {answer.reason}')

    async def _record_usage(self, io: Io, usage: Usage, usage_id: str | None) -> UsageAnswer:
        return await self._core.record_usage(io, usage, self.op_id, usage_id)

    def edited(self, result: Any) -> Any:
        """Returns a result as the obligations of the answer change it. Raises TypeError where it cannot be edited."""
        return obligations.edited_result(result, self.answer.obligations)

    # --- the end ---

    async def _end(self, io: Io, failure: BaseException | None) -> None:
        """Reports the end. Raises OpTerminatedError where the operation was terminated meanwhile."""
        is_theirs = failure is not None
        try:
            if self._core.is_closed:
                if failure is None:
                    raise ClientClosedError
                return
            ended = Ended(failure is None, None if failure is None else str(failure) or type(failure).__name__)
            if failure is not None and not isinstance(failure, Exception):
                # A task that is cancelled, or a process that is interrupted, does not wait for the gateway.
                self._core.orphans.add(self.op_id, ended)
                return
            if failure is None:
                try:
                    await self._checkpoint(io)
                except OpTerminatedError as error:
                    failure, ended = error, Ended(failure=str(error))
            await self._report(io, ended)
        finally:
            self._control.detach(self)
        if isinstance(failure, OpTerminatedError) and not is_theirs:
            raise failure
        if self.state == 'terminated' and not isinstance(failure, OpTerminatedError):
            raise OpTerminatedError(self.op_id, self._terminated_because) from failure

    async def _report(self, io: Io, ended: Ended) -> None:
        core = self._core
        if self.answer.unreachable and self.state != 'terminated':
            core.orphans.add(self.op_id, ended)
            return
        while self.state != 'terminated':
            try:
                await core.complete(io, self.op_id, ended, gives_up_when_lost=True)
                self.state = 'completing'
                return
            except GatewayError as error:
                if error.code != 'failed_precondition':
                    self._explain_unreported(error, ended)
                    return
            await self._ask(io)
            if self.state == 'paused':
                if ended.failure is not None:
                    # The error of the body does not wait until an operator ends the pause.
                    core.orphans.add(self.op_id, ended)
                    return
                self._asked_at = time.monotonic()
                # The end of the run raises it.
                with contextlib.suppress(OpTerminatedError):
                    await self._checkpoint(io)
            elif self.state != 'running':
                return

    def _explain_unreported(self, error: GatewayError, ended: Ended) -> None:
        # The gateway has restarted and does not know the operation.
        if error.code == 'not_found':
            return
        if is_of_proxy(error) or not is_verdict(error):
            self._core.orphans.add(self.op_id, ended)
        else:
            self._core.settings.on_warning(error)


def _undecided(answer: CheckAnswer, reason: str) -> CheckAnswer:
    """People have not decided in time: as if they had said no."""
    return replace(answer, decision='deny', cause='approval', reason=reason)


def current_op(core: Core) -> RunningOp | None:
    """The operation of this client, not of another, in whose body the caller is."""
    op = CURRENT.get()
    while op is not None and op._core is not core:
        op = op.parent
    return op
