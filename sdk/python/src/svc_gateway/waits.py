"""How calls wait: one logic for threads and for asyncio.

The logic of the client is written in `async def`. With `ThreadIo` it never suspends, so `drive` runs it to its end in
the calling thread; with `AsyncIo` it is awaited.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from .transport import Abort, Pool

T = TypeVar('T')


class Io(Protocol):
    async def call(
        self, method: str, message: Mapping[str, Any], timeout: float, bearer: str | None = None
    ) -> dict[str, Any]:
        """Calls the gateway within `timeout` seconds. Raises GatewayError."""

    async def sleep(self, seconds: float) -> None: ...

    async def blocking(self, work: Callable[[], T]) -> T:
        """Runs what blocks for a moment, such as a lock."""


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise RuntimeError('broken invariant: a call in a thread waits for nothing but its thread')


class ThreadIo:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._closed = threading.Event()

    async def call(
        self, method: str, message: Mapping[str, Any], timeout: float, bearer: str | None = None
    ) -> dict[str, Any]:
        return self._pool.call(method, message, timeout, bearer)

    async def sleep(self, seconds: float) -> None:
        self._closed.wait(seconds)

    async def blocking(self, work: Callable[[], T]) -> T:
        return work()

    def close(self) -> None:
        self._closed.set()


class AsyncIo:
    """Calls in threads of its own; one that is cancelled is cut off."""

    def __init__(self, pool: Pool, max_threads: int) -> None:
        self._pool = pool
        self._max_threads = max_threads
        self._threads = self._started()

    def _started(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._max_threads, thread_name_prefix='svc-gateway')

    async def call(
        self, method: str, message: Mapping[str, Any], timeout: float, bearer: str | None = None
    ) -> dict[str, Any]:
        abort = Abort()
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, self._pool.call, method, message, timeout, bearer, abort
        )
        try:
            return await work
        except asyncio.CancelledError:
            abort.abort()
            raise

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _renew(self) -> None:
        self._threads = self._started()

    async def aclose(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def backoff(attempt: int, base: float, most: float) -> float:
    """Seconds: exponential with full jitter, so that not all who lost the gateway at once return at once."""
    return random.random() * min(most, base * 2.0 ** min(attempt, 30))
