"""The calls of `AsyncAgentClient` by httpx: no threads, one connection pool for each event loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from typing import Any

from .settings import Settings
from .transport import USER_AGENT, Pool, answer_of, encoded, reason_of, unreachable
from .waits import AsyncIo

try:
    import httpx
except ImportError as error:
    raise ImportError("use_httpx needs the extra httpx: pip install 'svc-gateway[httpx]'") from error


class HttpxIo(AsyncIo):
    def __init__(self, pool: Pool, settings: Settings) -> None:
        super().__init__(pool, max_threads=4)
        self._settings = settings
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def _renew(self) -> None:
        super()._renew()
        self._clients = weakref.WeakKeyDictionary()

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            most = self._settings.max_connections
            client = httpx.AsyncClient(
                verify=self._settings.ssl_context or True,
                limits=httpx.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=20),
                headers={'User-Agent': USER_AGENT},
                trust_env=self._pool.is_proxied,
            )
            self._clients[loop] = client
        return client

    async def call(
        self, method: str, message: Mapping[str, Any], timeout: float, bearer: str | None = None
    ) -> dict[str, Any]:
        url = self._settings.url
        headers = {'Content-Type': 'application/json'}
        if bearer is not None:
            headers['Authorization'] = f'Bearer {bearer}'
        post = self._client().post(
            f'{url}/svc.governance.v1.{method}', content=encoded(message), headers=headers, timeout=timeout
        )
        try:
            response = await asyncio.wait_for(post, timeout)
        except (asyncio.TimeoutError, httpx.TimeoutException) as error:
            raise unreachable(url, f'no answer within {timeout:g} s', 'deadline_exceeded', unsent=False) from error
        except httpx.ConnectError as error:
            raise unreachable(url, reason_of(error.__cause__ or error), 'unavailable', unsent=True) from error
        except httpx.HTTPError as error:
            raise unreachable(url, reason_of(error), 'unavailable', unsent=False) from error
        return answer_of(response.status_code, response.headers, response.content, url)

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
        await super().aclose()
