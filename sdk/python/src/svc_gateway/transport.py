"""The connections to the gateway: Connect's JSON over HTTP/1.1, kept alive, by the standard library alone."""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import select
import socket
import ssl
import threading
import time
import urllib.request
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from .errors import ClientClosedError, GatewayError

#: A connection that nothing was sent on for so long may be closed by the gateway at any moment.
IDLE_SECONDS = 20.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
USER_AGENT = 'svc-gateway-python/0.2.0'

#: What Connect prescribes for answers that are not Connect's own, such as those of a proxy.
CODE_OF_STATUS = {
    400: 'internal',
    401: 'unauthenticated',
    403: 'permission_denied',
    404: 'unimplemented',
    407: 'unavailable',
    429: 'unavailable',
    502: 'unavailable',
    503: 'unavailable',
    504: 'unavailable',
}


class Abort:
    """Ends a call that is under way in another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.aborted = False

    def watch(self, sock: socket.socket | None) -> None:
        with self._lock:
            self._socket = sock
            if self.aborted:
                self._cut()

    def abort(self) -> None:
        with self._lock:
            self.aborted = True
            self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class _TimedReader(io.RawIOBase):
    """Reads until a deadline for the whole answer, however slowly its bytes drip in."""

    def __init__(self, sock: _TimedSocket) -> None:
        self._sock = sock
        self._raw = sock.inner.makefile('rb', buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.arm()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """The part of a socket that `http.client` needs, with one deadline for all that it does."""

    def __init__(self, inner: socket.socket) -> None:
        self.inner = inner
        self.deadline = 0.0
        self._unsent = b''

    def arm(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError('timed out')
        self.inner.settimeout(left)

    def sendall(self, data: Any) -> None:
        # The head and the body come one after the other, and go out together.
        self._unsent += data

    def flush(self) -> None:
        data, self._unsent = self._unsent, b''
        self.arm()
        self.inner.sendall(data)

    def makefile(self, *_args: object) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self))

    def close(self) -> None:
        self.inner.close()


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    headers: Mapping[str, str]

    @staticmethod
    def of_environment(scheme: str, host: str) -> Proxy | None:
        """The proxy that the environment names for this host. One's own machine is never asked for by a proxy."""
        if host == 'localhost' or host == '::1' or host.startswith('127.'):
            return None
        found = urllib.request.getproxies().get(scheme)
        if not found or urllib.request.proxy_bypass(host):
            return None
        parts = urlsplit(found if '://' in found else f'http://{found}')
        if parts.scheme != 'http' or not parts.hostname:
            raise ValueError(f'the proxy of {scheme}_proxy must be http://host:port')
        headers = {}
        if parts.username is not None:
            login = f'{unquote(parts.username)}:{unquote(parts.password or "")}'
            headers['Proxy-Authorization'] = 'Basic ' + base64.b64encode(login.encode()).decode()
        return Proxy(parts.hostname, parts.port or 80, headers)


class Pool:
    """Connections to one gateway, for any number of threads. After a fork, the child connects anew."""

    def __init__(self, url: str, ssl_context: ssl.SSLContext | None, max_connections: int) -> None:
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ''
        self._port = parts.port or (443 if parts.scheme == 'https' else 80)
        self._proxy = Proxy.of_environment(parts.scheme, self._host)
        self._context = (ssl_context or ssl.create_default_context()) if parts.scheme == 'https' else None
        # To a plain HTTP proxy, the whole address is the path.
        is_absolute = self._proxy is not None and self._context is None
        self._prefix = (url if is_absolute else parts.path).rstrip('/')
        self._max = max_connections
        self._renew()
        _after_fork(self)

    @property
    def is_proxied(self) -> bool:
        return self._proxy is not None

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._slots = threading.BoundedSemaphore(self._max)
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection, _since in idle:
            connection.close()

    def call(
        self,
        method: str,
        message: Mapping[str, Any],
        timeout: float,
        bearer: str | None = None,
        abort: Abort | None = None,
    ) -> dict[str, Any]:
        """The answer to one call within `timeout` seconds. Raises GatewayError."""
        headers = {'Content-Type': 'application/json', 'User-Agent': USER_AGENT}
        if bearer is not None:
            headers['Authorization'] = f'Bearer {bearer}'
        status, answer_headers, body = self.post(
            f'/svc.governance.v1.{method}', encoded(message), headers, timeout, abort
        )
        return answer_of(status, answer_headers, body, self.url)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], timeout: float, abort: Abort | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Sends a POST, and where a kept connection turns out to be closed, once more on a new one."""
        deadline = time.monotonic() + timeout
        if self._closed:
            raise ClientClosedError
        if not self._slots.acquire(timeout=timeout):
            raise unreachable(self.url, f'all {self._max} connections are in use', 'deadline_exceeded', unsent=True)
        try:
            connection = self._kept()
            if connection is not None:
                try:
                    return self._exchange(connection, path, body, headers, deadline, abort)
                except (ConnectionError, http.client.BadStatusLine):
                    if abort is not None and abort.aborted:
                        raise
                except (OSError, http.client.HTTPException) as error:
                    raise self._trouble(error, timeout, unsent=False) from error
            try:
                connection = self._connected(deadline)
            except (OSError, http.client.HTTPException) as error:
                raise self._trouble(error, timeout, unsent=True) from error
            return self._exchange(connection, path, body, headers, deadline, abort)
        except (OSError, http.client.HTTPException) as error:
            raise self._trouble(error, timeout, unsent=False) from error
        finally:
            self._slots.release()

    def _trouble(self, error: Exception, timeout: float, unsent: bool) -> GatewayError:
        if isinstance(error, TimeoutError):
            return unreachable(self.url, f'no answer within {timeout:g} s', 'deadline_exceeded', unsent)
        return unreachable(self.url, reason_of(error), 'unavailable', unsent)

    def _kept(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not _is_readable(connection):
                return connection
            connection.close()

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError('timed out')
        host, port = (self._host, self._port) if self._proxy is None else (self._proxy.host, self._proxy.port)
        if self._context is None:
            connection = http.client.HTTPConnection(host, port, timeout=left)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=left, context=self._context)
            if self._proxy is not None:
                connection.set_tunnel(self._host, self._port, dict(self._proxy.headers))
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        connection.sock = _TimedSocket(connection.sock)
        return connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        deadline: float,
        abort: Abort | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        sock: Any = connection.sock
        sock.deadline = deadline
        if self._proxy is not None and self._context is None:
            headers = {**headers, **self._proxy.headers}
        is_whole = False
        try:
            if abort is not None:
                abort.watch(sock.inner)
            connection.request('POST', self._prefix + path, body, dict(headers))
            sock.flush()
            response = connection.getresponse()
            answer = response.read(MAX_ANSWER_BYTES + 1)
            if len(answer) > MAX_ANSWER_BYTES:
                raise http.client.HTTPException('the answer is too long')
            is_whole = not response.will_close
            return response.status, cast('Mapping[str, str]', response.headers), answer
        finally:
            if abort is not None:
                abort.watch(None)
            self._keep(connection) if is_whole and not (abort is not None and abort.aborted) else connection.close()

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def _is_readable(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has closed the connection, or sent what nobody asked for."""
    try:
        inner = cast(Any, connection.sock).inner
        if hasattr(select, 'poll'):
            poll = select.poll()
            poll.register(inner, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([inner], [], [], 0)[0])
    except (OSError, ValueError, AttributeError):
        return True


_POOLS: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork(pool: Any) -> None:
    _POOLS.add(pool)


def _renew_all() -> None:
    # The sockets belong to the parent: they are dropped, not closed with a farewell. A lock may be held by a thread
    # that the child does not have.
    for pool in list(_POOLS):
        pool._renew()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_renew_all)


def encoded(message: Mapping[str, Any]) -> bytes:
    """Raises TypeError where JSON cannot hold a value."""
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise TypeError(f'what is sent must be JSON: {error}') from error


def answer_of(status: int, headers: Mapping[str, str], body: bytes, url: str) -> dict[str, Any]:
    """Raises the GatewayError that the answer is, if it is one."""
    try:
        read = json.loads(body)
    except ValueError:
        read = None
    if status == 200 and isinstance(read, dict):
        return read
    code, message = CODE_OF_STATUS.get(status, 'unknown'), None
    if isinstance(read, dict) and isinstance(read.get('code'), str) and isinstance(read.get('message'), str):
        code, message = read['code'], read['message']
    fault = headers.get('svc-code')
    if message is None:
        message = f'the server at {url} with status {status} is not a gateway'
        if status == 200:
            code = 'unavailable'  # a page of a proxy, as while the gateway restarts
    after = headers.get('retry-after') or ''
    # A proxy may say it as a date, or as no time at all.
    seconds = float(after) if after.isascii() and after.isdigit() and len(after) <= 6 else 0.0
    raise GatewayError(code, message, fault=fault, retry_after=seconds)


def unreachable(url: str, because: str, code: str, unsent: bool) -> GatewayError:
    error = GatewayError(code, f'no connection to {url}: {because}' if unsent else f'{url}: {because}')
    error.unsent = unsent
    return error


def reason_of(error: BaseException) -> str:
    """Why the gateway was not reached, in words for the reader of a log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f'its certificate is not trusted: {error.verify_message}'
    if isinstance(error, ssl.SSLError):
        return 'the server there does not speak TLS' if 'WRONG_VERSION' in str(error) else f'TLS failed: {error.reason}'
    if isinstance(error, ConnectionRefusedError):
        return 'the connection was refused'
    if isinstance(error, socket.gaierror):
        return 'the host name cannot be resolved'
    if isinstance(error, (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead)):
        return 'the connection was closed'
    return str(error) or type(error).__name__
