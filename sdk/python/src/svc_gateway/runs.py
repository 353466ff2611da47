"""`run` and `guard`: an operation around a block or a function, in threads and in asyncio."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextvars import Token
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar, cast

from . import obligations
from .arguments import Call, signature_of
from .control import Control
from .core import Core
from .errors import ActionDeniedError
from .ops import CURRENT, RunningOp, current_op
from .types import Action, Ended, Usage, UsageAnswer
from .waits import AsyncIo, drive

F = TypeVar('F', bound=Callable[..., Any])


class Op(RunningOp):
    """The operation whose body is running, for threads."""

    def checkpoint(self) -> None:
        """Waits while the operation or an outer one is paused. Call it wherever the body can stop.

        Raises OpTerminatedError when an operator has terminated it.
        """
        drive(self._checkpoint(self._core.thread_io))

    def record_usage(
        self,
        cost_usd: float | None = None,
        *,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        usage_id: str | None = None,
    ) -> UsageAnswer:
        """Records what the operation has spent: `cost_usd` US dollars, or the tokens of a model.

        Every call adds to it; with the same `usage_id`, it counts once. Raises GatewayError.
        """
        usage = Usage(cost_usd, model, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
        return drive(self._record_usage(self._core.thread_io, usage, usage_id))


class AsyncOp(RunningOp):
    """The operation whose body is running, for asyncio."""

    _io: AsyncIo

    async def checkpoint(self) -> None:
        """Waits while the operation or an outer one is paused. Await it wherever the body can stop.

        Raises OpTerminatedError when an operator has terminated it.
        """
        await self._checkpoint(self._io)

    async def record_usage(
        self,
        cost_usd: float | None = None,
        *,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        usage_id: str | None = None,
    ) -> UsageAnswer:
        """Records what the operation has spent: `cost_usd` US dollars, or the tokens of a model.

        Every call adds to it; with the same `usage_id`, it counts once. Raises GatewayError.
        """
        usage = Usage(cost_usd, model, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
        return await self._record_usage(self._io, usage, usage_id)


def _withhold_unless_editable(op: RunningOp, action: Action) -> None:
    """A block returns nothing that could be edited: it has to say that it uses `op.edited`."""
    if action.supported_obligations is None and obligations.concerns_result(op.answer.obligations):
        raise op._unfulfilled(
            op.answer,
            action,
            'its obligations are about the result, and supported_obligations does not say that the body uses op.edited',
        )


class Run:
    """The run that `AgentClient.run` returns: a context manager, and a decorator."""

    def __init__(self, core: Core, control: Control, action: Action) -> None:
        self._core = core
        self._control = control
        self._action = action
        self._op: Op | None = None
        self._token: Token[RunningOp | None] | None = None

    def __enter__(self) -> Op:
        op = self._begun()
        try:
            _withhold_unless_editable(op, self._action)
        except ActionDeniedError:
            self._control.detach(op)
            raise
        self._op = op
        self._token = CURRENT.set(op)
        return op

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._op is None or self._token is None:
            raise RuntimeError('the run has not begun')
        op, self._op = self._op, None
        CURRENT.reset(self._token)
        drive(op._end(self._core.thread_io, error))

    def _begun(self) -> Op:
        if self._op is not None:
            raise RuntimeError('a run is one operation: call client.run anew for another')
        op = Op(self._core, self._control, self._action, current_op(self._core))
        drive(op._begin(self._core.thread_io))
        return op

    def __call__(self, function: F) -> F:
        """Each call of the function is an operation of its own."""
        if inspect.iscoroutinefunction(function):
            raise TypeError('an async function needs an AsyncAgentClient')

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            run = Run(self._core, self._control, self._action)
            return run.body(lambda _op: function(*args, **kwargs))

        return cast(F, wrapped)

    def body(self, function: Callable[[Op], Any]) -> Any:
        """Runs the function with the operation, and returns its result as the obligations change it."""
        op = self._begun()
        token = CURRENT.set(op)
        try:
            result = op.edited(function(op))
        except BaseException as error:
            CURRENT.reset(token)
            drive(op._end(self._core.thread_io, error))
            raise
        CURRENT.reset(token)
        drive(op._end(self._core.thread_io, None))
        return result


class AsyncRun:
    """The run that `AsyncAgentClient.run` returns: an asynchronous context manager, and a decorator."""

    def __init__(self, core: Core, control: Control, io: AsyncIo, action: Action) -> None:
        self._core = core
        self._control = control
        self._io = io
        self._action = action
        self._op: AsyncOp | None = None
        self._token: Token[RunningOp | None] | None = None

    async def __aenter__(self) -> AsyncOp:
        op = await self._begun()
        try:
            _withhold_unless_editable(op, self._action)
        except ActionDeniedError:
            self._control.detach(op)
            raise
        self._op = op
        self._token = CURRENT.set(op)
        return op

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._op is None or self._token is None:
            raise RuntimeError('the run has not begun')
        op, self._op = self._op, None
        CURRENT.reset(self._token)
        await op._end(self._io, error)

    async def _begun(self) -> AsyncOp:
        if self._op is not None:
            raise RuntimeError('a run is one operation: call client.run anew for another')
        op = AsyncOp(self._core, self._control, self._action, current_op(self._core))
        op._io = self._io
        await op._begin(self._io)
        return op

    def __call__(self, function: F) -> F:
        """Each call of the function is an operation of its own."""
        if not inspect.iscoroutinefunction(function):
            raise TypeError('a function that is not async needs an AgentClient')

        @functools.wraps(function)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            run = AsyncRun(self._core, self._control, self._io, self._action)
            return await run.body(lambda _op: function(*args, **kwargs))

        return cast(F, wrapped)

    async def body(self, function: Callable[[AsyncOp], Awaitable[Any]]) -> Any:
        """Runs the function with the operation, and returns its result as the obligations change it."""
        op = await self._begun()
        token = CURRENT.set(op)
        try:
            result = op.edited(await function(op))
        except BaseException as error:
            CURRENT.reset(token)
            await op._end(self._io, error)
            raise
        CURRENT.reset(token)
        await op._end(self._io, None)
        return result


def _call_of(action: Action, call: Call) -> Action:
    return replace(action, attributes=call.attributes, supported_obligations=_ALL)


_ALL = ('redact', 'set', 'cap', 'notify')


def _arguments(op: RunningOp, action: Action, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        return call.edited(op.attributes or {})
    except TypeError as error:
        raise op._unfulfilled(op.answer, action, str(error)) from error


def guarded(core: Core, control: Control, action: Action, function: F) -> F:
    """The function behind a check: its arguments are the attributes, as the obligations change them."""
    if inspect.iscoroutinefunction(function):
        raise TypeError('an async function needs an AsyncAgentClient')
    signature = signature_of(function)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = Call(signature, args, kwargs)
        own = _call_of(action, call)

        def body(op: Op) -> Any:
            new_args, new_kwargs = _arguments(op, own, call)
            return function(*new_args, **new_kwargs)

        return Run(core, control, own).body(body)

    return cast(F, wrapped)


def guarded_async(core: Core, control: Control, io: AsyncIo, action: Action, function: F) -> F:
    """As `guarded`, for an async function."""
    if not inspect.iscoroutinefunction(function):
        raise TypeError('a function that is not async needs an AgentClient')
    signature = signature_of(function)

    @functools.wraps(function)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = Call(signature, args, kwargs)
        own = _call_of(action, call)

        async def body(op: AsyncOp) -> Any:
            new_args, new_kwargs = _arguments(op, own, call)
            return await function(*new_args, **new_kwargs)

        return await AsyncRun(core, control, io, own).body(body)

    return cast(F, wrapped)


def ended_of(error: str | None, usage: Usage | None) -> Ended:
    return Ended(failure=error, usage=usage)
