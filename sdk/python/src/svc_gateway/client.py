"""The agent's clients: `AgentClient` for threads, `AsyncAgentClient` for asyncio."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from .arguments import name_of
from .control import Control
from .core import Core
from .errors import ClientClosedError
from .ops import current_op
from .runs import AsyncRun, Run, ended_of, guarded, guarded_async
from .settings import settings_of
from .transport import _after_fork
from .types import Action, AgentId, AgentLike, Approval, CheckAnswer, Notice, OpSignal, Usage, UsageAnswer
from .waits import AsyncIo, Io, drive
from .wire import named

F = TypeVar('F', bound=Callable[..., Any])


class _Client:
    """The common part of both clients.

    `url` is that of the gateway's HTTP port, `agent` is `<org>/<team>/<agent>`, and `credential_token` the agent's own
    token. With an `api_key` of write scope instead, the client registers the agent and keeps its token in memory; each
    process then needs an agent of its own. What is left out is read from `SVC_GATEWAY_URL`, `SVC_AGENT`,
    `SVC_AGENT_TOKEN` and `SVC_API_KEY`.

    `on_unreachable` answers checks when the gateway cannot be reached: `deny`, or `allow`. Times are in seconds:
    `check_timeout` is the longest time a check takes with all retries, `call_timeout` that of other calls,
    `approval_timeout` how long people have to decide, `outage_timeout` how long checks wait for a lost gateway,
    `close_timeout` how long `close` waits for last reports, and `poll_interval` the least time between two questions
    whether a running operation is paused or terminated. With `grpc_address`, `host:port` of the gateway's gRPC, and the
    extra `grpc`, signals arrive by a stream instead.

    Raises TypeError or ValueError with the option that is wrong.
    """

    def __init__(
        self,
        url: str | None = None,
        agent: AgentLike | None = None,
        credential_token: str | None = None,
        *,
        api_key: str | None = None,
        parent: AgentLike | None = None,
        on_unreachable: Literal['allow', 'deny'] = 'deny',
        check_timeout: float = 5.0,
        call_timeout: float = 10.0,
        approval_timeout: float = 900.0,
        outage_timeout: float = 1.0,
        close_timeout: float = 5.0,
        poll_interval: float = 1.0,
        max_connections: int = 256,
        ssl_context: ssl.SSLContext | None = None,
        grpc_address: str | None = None,
        use_httpx: bool = False,
        on_warning: Callable[[Exception], None] | None = None,
        on_notice: Callable[[Notice], None] | None = None,
        on_signal: Callable[[OpSignal], object] | None = None,
    ) -> None:
        self._core = Core(
            settings_of(
                url,
                agent,
                credential_token,
                api_key=api_key,
                parent=parent,
                on_unreachable=on_unreachable,
                check_timeout=check_timeout,
                call_timeout=call_timeout,
                approval_timeout=approval_timeout,
                outage_timeout=outage_timeout,
                close_timeout=close_timeout,
                poll_interval=poll_interval,
                max_connections=max_connections,
                ssl_context=ssl_context,
                grpc_address=grpc_address,
                use_httpx=use_httpx,
                on_warning=on_warning,
                on_notice=on_notice,
                on_signal=on_signal,
            )
        )
        self._control = Control(self._core)
        self._tasks: AsyncIo | None = None
        self._prepare()

    def _prepare(self) -> None:
        """For what one of the two needs besides."""

    def _async_io(self) -> AsyncIo:
        """How this client is awaited: also one for threads, in an agent framework that is asynchronous."""
        if self._tasks is None:
            self._tasks = AsyncIo(self._core.pool, self._core.settings.max_connections)
            _after_fork(self._tasks)
        return self._tasks

    @property
    def agent(self) -> AgentId:
        return self._core.settings.agent

    @property
    def url(self) -> str:
        return self._core.settings.url

    async def _check(self, io: Io, action: Action) -> CheckAnswer:
        if self._core.is_closed:
            raise ClientClosedError
        around = current_op(self._core)
        named_action = named(action, around.trace_id if around is not None else None)
        return await self._core.check(io, named_action, action.span_id is None and not action.dry_run)

    async def _batch(self, io: Io, actions: Sequence[Action | Mapping[str, Any]]) -> list[CheckAnswer]:
        around = current_op(self._core)
        trace_id = around.trace_id if around is not None else None
        asked = [each if isinstance(each, Action) else Action(**each) for each in actions]
        return await self._core.batch(io, [named(each, trace_id) for each in asked])


def _action(action: str | Action, fields: Mapping[str, Any]) -> Action:
    if isinstance(action, Action):
        return replace(
            action, **{name: value for name, value in fields.items() if value is not None and value is not False}
        )
    return Action(action, **fields)


class AgentClient(_Client):
    """An agent and its gateway, for threads.

    It may be used from any number of threads, and in processes that were forked from the one that made it.

        with AgentClient('http://127.0.0.1:8080', 'acme/search/crawler-1', token) as client:
            with client.run('tool.call', 'web_search') as op:
                for query in queries:
                    op.checkpoint()
                    search(query)
    """

    def check(
        self,
        action: str | Action,
        resource: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        estimated_cost_usd: float | None = None,
        caller: AgentLike | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        supported_obligations: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> CheckAnswer:
        """Asks whether an action may be taken. An allowed one is a running operation: report its end with `complete`.

        Answers within `check_timeout`, also when the gateway cannot be reached; see `on_unreachable`. Raises
        GatewayError when the gateway refuses the request for good, such as `invalid_argument` or `unauthenticated`,
        and TypeError where JSON cannot hold it.
        """
        fields = dict(
            resource=resource,
            attributes=attributes,
            estimated_cost_usd=estimated_cost_usd,
            caller=caller,
            trace_id=trace_id,
            span_id=span_id,
            supported_obligations=supported_obligations,
            dry_run=dry_run,
        )
        return drive(self._check(self._core.thread_io, _action(action, fields)))

    def batch(self, actions: Sequence[Action | Mapping[str, Any]]) -> list[CheckAnswer]:
        """Up to 1,000 checks in one call, answered in order. Raises GatewayError where one of them is malformed."""
        return drive(self._batch(self._core.thread_io, actions))

    def run(
        self,
        action: str | Action,
        resource: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        estimated_cost_usd: float | None = None,
        caller: AgentLike | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        supported_obligations: Sequence[str] | None = None,
    ) -> Run:
        """Checks the action, runs the block or function if it is allowed, and reports its end.

        An action that people have to approve waits for them, up to `approval_timeout`. Raises ActionDeniedError, before
        the body; OpTerminatedError when an operator terminates the operation, whether the body has noticed or not; and
        GatewayError as `check`. What the body raises comes through, and the operation ends as failed. A block acts on
        `op.attributes` where it names `supported_obligations`; a function's result is edited as obligations say.
        """
        fields = dict(
            resource=resource,
            attributes=attributes,
            estimated_cost_usd=estimated_cost_usd,
            caller=caller,
            trace_id=trace_id,
            span_id=span_id,
            supported_obligations=supported_obligations,
        )
        if self._core.is_closed:
            raise ClientClosedError
        return Run(self._core, self._control, _action(action, fields))

    @overload
    def guard(self, name: str, function: F, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> F: ...

    @overload
    def guard(self, name: str, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> Callable[[F], F]: ...

    @overload
    def guard(self, function: F, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> F: ...

    def guard(
        self,
        name: Any,
        function: Any = None,
        /,
        *,
        action: str = 'tool.call',
        estimated_cost_usd: float | None = None,
    ) -> Any:
        """The function behind a check of `tool.call` on its name: `guard(name, function)`, `@guard(name)` or `@guard`.

        Its arguments are the attributes. They, and its result, are edited as the obligations say. Raises what `run`
        raises.
        """
        return _guard(
            name,
            function,
            lambda tool, fn: guarded(
                self._core, self._control, Action(action, tool, estimated_cost_usd=estimated_cost_usd), fn
            ),
        )

    def wait_approval(self, approval_id: str, timeout: float | None = None) -> Approval:
        """Returns once people have decided, or after `timeout` seconds (`approval_timeout`) with the state so far.

        Then check again with the same `trace_id` and `span_id`. Raises GatewayError, such as `not_found`.
        """
        seconds = self._core.settings.approval_timeout if timeout is None else timeout
        return drive(self._core.wait_approval(self._core.thread_io, approval_id, seconds))

    def cancel_approval(self, approval_id: str) -> Approval:
        """Withdraws a request until it is used. Raises GatewayError."""
        return drive(self._core.cancel_approval(self._core.thread_io, approval_id))

    def complete(
        self, op_id: str, *, cost_usd: float | None = None, error: str | None = None, usage: Usage | None = None
    ) -> None:
        """Reports that an operation allowed by `check` is done, or has failed with an `error`.

        `cost_usd`, in US dollars, or `usage` is what it has spent besides what was recorded before. Tried again for
        `call_timeout`. Raises GatewayError.
        """
        spent = Usage(cost_usd) if cost_usd is not None else usage
        drive(self._core.complete(self._core.thread_io, op_id, ended_of(error, spent)))

    def record_usage(
        self,
        cost_usd: float | None = None,
        *,
        op_id: str | None = None,
        usage_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> UsageAnswer:
        """Records what was spent: `cost_usd` US dollars, or the tokens of a model, which the gateway prices.

        Tried again for `call_timeout`, and counted once for each `usage_id`; the default is a new one. Raises
        GatewayError.
        """
        usage = Usage(cost_usd, model, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
        return drive(self._core.record_usage(self._core.thread_io, usage, op_id, usage_id))

    def close(self) -> None:
        """Waits at most `close_timeout` seconds for last reports, and disconnects.

        Later calls raise ClientClosedError.
        """
        self._control.close()
        self._core.close()

    def __enter__(self) -> AgentClient:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncAgentClient(_Client):
    """An agent and its gateway, for asyncio: every call of `AgentClient`, to be awaited.

    With `use_httpx` and the extra `httpx`, its calls are made by that library, else by threads of its own.

        async with AsyncAgentClient('http://127.0.0.1:8080', 'acme/search/crawler-1', token) as client:
            async with client.run('tool.call', 'web_search') as op:
                await op.checkpoint()
    """

    def _prepare(self) -> None:
        settings = self._core.settings
        if settings.use_httpx:
            from .httpx_io import HttpxIo

            self._tasks = HttpxIo(self._core.pool, settings)
            _after_fork(self._tasks)
        self._io = self._async_io()

    async def check(
        self,
        action: str | Action,
        resource: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        estimated_cost_usd: float | None = None,
        caller: AgentLike | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        supported_obligations: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> CheckAnswer:
        """As `AgentClient.check`. Where the task is cancelled and the action is allowed anyway, it is completed."""
        fields = dict(
            resource=resource,
            attributes=attributes,
            estimated_cost_usd=estimated_cost_usd,
            caller=caller,
            trace_id=trace_id,
            span_id=span_id,
            supported_obligations=supported_obligations,
            dry_run=dry_run,
        )
        return await self._check(self._io, _action(action, fields))

    async def batch(self, actions: Sequence[Action | Mapping[str, Any]]) -> list[CheckAnswer]:
        """As `AgentClient.batch`."""
        return await self._batch(self._io, actions)

    def run(
        self,
        action: str | Action,
        resource: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        estimated_cost_usd: float | None = None,
        caller: AgentLike | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
        supported_obligations: Sequence[str] | None = None,
    ) -> AsyncRun:
        """As `AgentClient.run`, for `async with` and async functions."""
        fields = dict(
            resource=resource,
            attributes=attributes,
            estimated_cost_usd=estimated_cost_usd,
            caller=caller,
            trace_id=trace_id,
            span_id=span_id,
            supported_obligations=supported_obligations,
        )
        if self._core.is_closed:
            raise ClientClosedError
        return AsyncRun(self._core, self._control, self._io, _action(action, fields))

    @overload
    def guard(self, name: str, function: F, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> F: ...

    @overload
    def guard(self, name: str, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> Callable[[F], F]: ...

    @overload
    def guard(self, function: F, /, *, action: str = ..., estimated_cost_usd: float | None = ...) -> F: ...

    def guard(
        self,
        name: Any,
        function: Any = None,
        /,
        *,
        action: str = 'tool.call',
        estimated_cost_usd: float | None = None,
    ) -> Any:
        """As `AgentClient.guard`, for async functions."""
        return _guard(
            name,
            function,
            lambda tool, fn: guarded_async(
                self._core, self._control, self._io, Action(action, tool, estimated_cost_usd=estimated_cost_usd), fn
            ),
        )

    async def wait_approval(self, approval_id: str, timeout: float | None = None) -> Approval:
        """As `AgentClient.wait_approval`."""
        seconds = self._core.settings.approval_timeout if timeout is None else timeout
        return await self._core.wait_approval(self._io, approval_id, seconds)

    async def cancel_approval(self, approval_id: str) -> Approval:
        """As `AgentClient.cancel_approval`."""
        return await self._core.cancel_approval(self._io, approval_id)

    async def complete(
        self, op_id: str, *, cost_usd: float | None = None, error: str | None = None, usage: Usage | None = None
    ) -> None:
        """As `AgentClient.complete`."""
        spent = Usage(cost_usd) if cost_usd is not None else usage
        await self._core.complete(self._io, op_id, ended_of(error, spent))

    async def record_usage(
        self,
        cost_usd: float | None = None,
        *,
        op_id: str | None = None,
        usage_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> UsageAnswer:
        """As `AgentClient.record_usage`."""
        usage = Usage(cost_usd, model, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens)
        return await self._core.record_usage(self._io, usage, op_id, usage_id)

    async def close(self) -> None:
        """As `AgentClient.close`."""
        self._control.close()
        await self._io.blocking(self._core.close)
        await self._io.aclose()

    async def __aenter__(self) -> AsyncAgentClient:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()


def _guard(name: Any, function: Any, guard: Callable[[str, Any], Any]) -> Any:
    if callable(name):
        return guard(name_of(name), name)
    if not isinstance(name, str):
        raise TypeError('guard needs the name of the tool: guard(name, function)')
    if function is None:
        return lambda each: guard(name, each)
    return guard(name, function)
