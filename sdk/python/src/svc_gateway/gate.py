"""The common part of the adapters of agent frameworks: a tool call is checked, run and reported, and fails closed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .arguments import jsonable, restored
from .client import AgentClient, AsyncAgentClient
from .errors import ActionDeniedError, GatewayError, OpTerminatedError
from .ops import CURRENT, ApprovalPending, RunningOp, current_op
from .runs import AsyncOp, Op
from .types import OBLIGATION_TYPES, Action, Approval, CheckAnswer, Usage
from .waits import AsyncIo, Io, ThreadIo

Client = AgentClient | AsyncAgentClient
#: `native`: as the framework has people asked, where it can; `wait`: the call waits for them.
Approvals = Literal['native', 'wait']


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, under ids that stay the same when the framework replays it."""

    name: str
    arguments: Mapping[str, Any]
    #: Of the session, thread or run.
    session: str
    call_id: str
    action: str = 'tool.call'


@dataclass
class Allowed:
    """The tool may run, with these arguments."""

    op: RunningOp
    arguments: dict[str, Any]
    token: Token[RunningOp | None] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Refused:
    """The tool must not run, or its result must not be used; `message` is what the model is told."""

    message: str
    answer: CheckAnswer | None = None


@dataclass(frozen=True)
class Pending:
    """People decide first. Ask again, with the same ids, once they have."""

    approval_id: str
    message: str
    answer: CheckAnswer


def part_of_id(text: str) -> str:
    """The id of the framework, or, where the gateway does not take it, one that is made of it."""
    if re.fullmatch(r'[A-Za-z0-9._/=+@-]{1,128}', text):
        return text
    return hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]


def denial_text(what: str, answer: CheckAnswer) -> str:
    """Tells the model of a denial: why, what it may do instead, and that another form of it will not do."""
    parts = [f'{what} was denied by policy: {answer.reason}.']
    if answer.cause is not None:
        parts.append(f'Cause: {answer.cause}.')
    if answer.resets_at is not None:
        parts.append(f'It may be tried again after {answer.resets_at.isoformat()}.')
    if answer.remedy is not None:
        parts.append(f'Instead: {answer.remedy}.')
    if answer.approval_id is not None:
        parts.append(f'Approval: {answer.approval_id}.')
    parts.append('It was not carried out. Do not try the same in another form.')
    return ' '.join(parts)


class Gate:
    """Asks for an adapter. Whatever goes wrong, the tool does not run."""

    def __init__(self, client: Client) -> None:
        if not isinstance(client, (AgentClient, AsyncAgentClient)):
            raise TypeError('an AgentClient or an AsyncAgentClient is needed')
        self._client = client
        self._core = client._core
        self._control = client._control

    @property
    def thread_io(self) -> ThreadIo:
        return self._core.thread_io

    @property
    def async_io(self) -> AsyncIo:
        return self._client._async_io()

    def warn(self, error: Exception) -> None:
        self._core.settings.on_warning(error)

    async def begin(self, io: Io, call: ToolCall, *, waits: bool) -> Allowed | Refused | Pending:
        """Never raises anything but what ends the task or process. With `waits`, never Pending."""
        try:
            return await self._begun(io, call, waits)
        except ApprovalPending as pending:
            answer = pending.answer
            approval_id = answer.approval_id or ''
            message = f'{call.name} waits for people ({answer.reason}); approval {approval_id}.'
            return Pending(approval_id, message, answer)
        except ActionDeniedError as denied:
            return Refused(denial_text(call.name, denied.answer), denied.answer)
        except Exception as error:
            self.warn(error)
            return Refused(f'{call.name} was not carried out: it could not be checked ({error}).')

    async def _begun(self, io: Io, call: ToolCall, waits: bool) -> Allowed:
        attributes = {str(name): jsonable(value) for name, value in call.arguments.items()}
        action = Action(
            call.action,
            call.name,
            attributes,
            trace_id=part_of_id(call.session),
            span_id=part_of_id(call.call_id),
            supported_obligations=OBLIGATION_TYPES,
        )
        parent = current_op(self._core)
        op: RunningOp
        if isinstance(io, AsyncIo):
            op = AsyncOp(self._core, self._control, action, parent)
            op._io = io
        else:
            op = Op(self._core, self._control, action, parent)
        await op._begin(io, waits)
        try:
            arguments = restored(dict(call.arguments), attributes, op.attributes or {})
        except TypeError as error:
            self._control.detach(op)
            raise op._unfulfilled(op.answer, action, str(error)) from error
        return Allowed(op, arguments)

    async def decide(self, io: Io, call: ToolCall) -> CheckAnswer | Refused | Pending:
        """Only asks, before the framework decides whether to call the tool. Then `begin` asks again."""
        begun = await self.begin(io, call, waits=False)
        if isinstance(begun, Allowed):
            self.detach(begun)
            return begun.op.answer
        return begun

    def detach(self, allowed: Allowed) -> None:
        """The operation goes on, and its call comes again under the same ids."""
        self._control.detach(allowed.op)

    def enter(self, allowed: Allowed) -> None:
        """Call it where the tool runs in the caller's context, so that what it does belongs to the operation."""
        allowed.token = CURRENT.set(allowed.op)

    def leave(self, allowed: Allowed) -> None:
        token, allowed.token = allowed.token, None
        if token is not None:
            CURRENT.reset(token)

    async def end(self, io: Io, allowed: Allowed, result: Any) -> Any:
        """The result as obligations change it, or Refused where it must not be used."""
        op = allowed.op
        try:
            edited = op.edited(result)
        except TypeError as error:
            refused = await self.fail(io, allowed, error)
            return refused or Refused(f'The result of {op._action.resource} is withheld: {error}.')
        try:
            await op._end(io, None)
        except OpTerminatedError as error:
            return Refused(f'{error}. The result of {op._action.resource} is withheld. Stop this work.')
        except Exception as error:
            self.warn(error)
            return Refused(f'The result of {op._action.resource} is withheld: {error}.')
        return edited

    async def fail(self, io: Io, allowed: Allowed, error: BaseException) -> Refused | None:
        """The tool has raised. Refused where the operation was terminated meanwhile."""
        try:
            await allowed.op._end(io, error)
        except OpTerminatedError as terminated:
            return Refused(f'{terminated}. Stop this work.')
        except Exception as trouble:
            self.warn(trouble)
        return None

    async def post(self, io: Io, path: str, body: bytes) -> dict[str, Any]:
        """Returns the answer of another door to the agent. Tried again while it is lost; raises GatewayError."""
        return await self._core.post(io, path, body)

    async def wait_approval(self, io: Io, approval_id: str) -> Approval:
        """Raises GatewayError."""
        return await self._core.wait_approval(io, approval_id, self._core.settings.approval_timeout)

    async def cancel(self, io: Io, approval_id: str) -> None:
        """The framework's user has said no: nobody has to decide any more."""
        try:
            await self._core.cancel_approval(io, approval_id)
        except GatewayError as error:
            if error.code not in ('failed_precondition', 'not_found'):
                self.warn(error)

    async def count(self, io: Io, usage: Usage, usage_id: str | None) -> None:
        """Records what a model has used; what cannot be recorded, such as a model without a price, is a warning."""
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        # Some frameworks count tokens of a cache apart from the others.
        if cached > (usage.input_tokens or 0):
            usage = replace(usage, input_tokens=(usage.input_tokens or 0) + cached)
        try:
            await self._core.record_usage(io, usage, None, usage_id)
        except Exception as error:
            warning = RuntimeError(f'the tokens of {usage.model} are not recorded: {error}')
            warning.__cause__ = error
            self.warn(warning)
