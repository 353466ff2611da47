"""Everything this package raises: one class per kind."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import CheckAnswer, DenialCause, Period, Tier


class GatewayError(Exception):
    """The gateway has refused a call, or could not be reached for it.

    `code` is the name of a gRPC status in lower case, such as `unavailable` or `not_found`. `fault` is the gateway's
    own code (`invalid_transition`, `overloaded` ...); None if the gateway was not reached, or a proxy answered.
    `retry_after` is how many seconds the gateway asks to wait; 0 if it does not say.
    """

    def __init__(self, code: str, message: str, *, fault: str | None = None, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.fault = fault
        self.retry_after = retry_after
        #: Whether there was no connection, so that the gateway cannot have seen the call.
        self.unsent = False


class ActionDeniedError(Exception):
    """The action must not be taken; the body of the run has not begun.

    `reason` is one sentence for people, `cause` one word for programs. `tier` and `period` say which
    budget denied it, and `resets_at` when asking again can help, after a budget or a limit. `remedy` is what
    the agent may do instead.
    """

    def __init__(self, action: str, resource: str | None, answer: CheckAnswer) -> None:
        target = '' if resource is None else f' on {resource}'
        super().__init__(f'{action}{target} is denied: {answer.reason}')
        self.action = action
        self.resource = resource
        self.answer = answer

    @property
    def reason(self) -> str:
        return self.answer.reason

    @property
    def cause(self) -> DenialCause | None:
        return self.answer.cause

    @property
    def tier(self) -> Tier | None:
        return self.answer.tier

    @property
    def period(self) -> Period | None:
        return self.answer.period

    @property
    def resets_at(self) -> datetime | None:
        return self.answer.resets_at

    @property
    def remedy(self) -> str | None:
        return self.answer.remedy

    @property
    def policy(self) -> str | None:
        return self.answer.policy

    @property
    def rule_id(self) -> str | None:
        return self.answer.rule_id

    @property
    def approval_id(self) -> str | None:
        return self.answer.approval_id

    @property
    def op_id(self) -> str:
        return self.answer.op_id

    @property
    def unreachable(self) -> bool:
        """True when the gateway could not be reached and `on_unreachable` denied."""
        return self.answer.unreachable


class OpTerminatedError(Exception):
    """An operator has terminated the operation, or it may not continue after an outage: the body must stop."""

    def __init__(self, op_id: str, message: str) -> None:
        super().__init__(message)
        self.op_id = op_id


class ClientClosedError(Exception):
    """The client was closed before the call finished, or before it was made."""

    def __init__(self) -> None:
        super().__init__('the agent client is closed')
