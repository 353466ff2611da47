"""Connections: kept, dropped, late, hostile, through a proxy, over TLS, and after a fork."""

import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from svc_gateway import AgentClient, GatewayError
from svc_gateway.testing import TOKEN, FakeGateway
from svc_gateway.transport import Pool, Proxy


class Scripted:
    """Answers each connection with the next bytes; counts what it has accepted."""

    def __init__(self, *answers: bytes, hold: float = 0.0, drip: float = 0.0) -> None:
        self.requests: list[bytes] = []
        self._answers = list(answers)
        self._hold, self._drip = hold, drip
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = self._listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}'
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.requests.append(connection.recv(65536))
            time.sleep(self._hold)
            try:
                for byte in [answer] if not self._drip else [answer[at : at + 1] for at in range(len(answer))]:
                    connection.sendall(byte)
                    time.sleep(self._drip)
            except OSError:
                pass
            connection.close()


def json_answer(text: str) -> bytes:
    return f'HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}'.encode()


@pytest.fixture
def pool(fake: FakeGateway) -> Iterator[Pool]:
    pool = Pool(fake.url, None, 8)
    yield pool
    pool.close()


def test_a_connection_is_kept_and_used_again(fake: FakeGateway, pool: Pool) -> None:
    for _ in range(5):
        pool.call('AgentService/RegisterAgent', {}, 5)
    assert len(pool._idle) == 1


def test_a_kept_connection_that_was_closed_is_replaced() -> None:
    server = Scripted(json_answer('{"a":1}'), json_answer('{"a":2}'))
    pool = Pool(server.url, None, 8)
    assert pool.call('X', {}, 5) == {'a': 1}
    assert pool.call('X', {}, 5) == {'a': 2}


def test_an_answer_that_drips_in_ends_at_the_deadline() -> None:
    server = Scripted(json_answer('{"a":1}'), drip=0.1)
    began = time.monotonic()
    with pytest.raises(GatewayError, match=r'no answer within 0\.5 s') as caught:
        Pool(server.url, None, 8).call('X', {}, 0.5)
    assert caught.value.code == 'deadline_exceeded'
    assert time.monotonic() - began < 2


def test_an_answer_without_end_is_refused() -> None:
    body = b'HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n' + b' ' * 17_000_000
    with pytest.raises(GatewayError, match='too long'):
        Pool(Scripted(body).url, None, 8).call('X', {}, 10)


@pytest.mark.parametrize(
    ('answer', 'code'),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'unavailable'),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull', 'unavailable'),
        (b'HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno', 'unavailable'),
        (b'HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno', 'permission_denied'),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"decision":', 'unavailable'),
        (b'SSH-2.0-OpenSSH\r\n', 'unavailable'),
        (b'', 'unavailable'),
    ],
)
def test_what_is_no_gateway_is_an_error(answer: bytes, code: str) -> None:
    server = Scripted(answer, answer)
    with pytest.raises(GatewayError) as caught:
        Pool(server.url, None, 8).call('X', {}, 5)
    assert caught.value.code == code


def test_nobody_listens(dead_url: str) -> None:
    with pytest.raises(GatewayError, match='the connection was refused') as caught:
        Pool(dead_url, None, 8).call('X', {}, 5)
    assert (caught.value.code, caught.value.unsent) == ('unavailable', True)


def test_no_more_connections_than_allowed_are_open() -> None:
    server = Scripted(json_answer('{}'), hold=1.0)
    pool = Pool(server.url, None, 1)
    first = threading.Thread(target=pool.call, args=('X', {}, 5))
    first.start()
    time.sleep(0.1)
    with pytest.raises(GatewayError, match='all 1 connections are in use'):
        pool.call('X', {}, 0.2)
    first.join()


def test_a_plain_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Scripted(json_answer('{"a":1}'))
    monkeypatch.setenv('http_proxy', f'http://user:p%40ss@127.0.0.1:{server.port}')
    monkeypatch.delenv('no_proxy', raising=False)
    assert Pool('http://gateway.example:8080', None, 8).call('X', {}, 5) == {'a': 1}
    head = server.requests[0].decode()
    assert head.startswith('POST http://gateway.example:8080/svc.governance.v1.X HTTP/1.1\r\n')
    assert 'Proxy-Authorization: Basic dXNlcjpwQHNz' in head


def test_a_tunnel_is_asked_for_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Scripted(b'HTTP/1.1 407 Authenticate\r\nContent-Length: 0\r\n\r\n')
    monkeypatch.setenv('https_proxy', f'http://127.0.0.1:{server.port}')
    with pytest.raises(GatewayError, match='407'):
        Pool('https://gateway.example', None, 8).call('X', {}, 5)
    assert server.requests[0].startswith(b'CONNECT gateway.example:443 HTTP/1.')


def test_one_s_own_machine_and_excepted_hosts_need_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('http_proxy', 'http://proxy:3128')
    monkeypatch.setenv('no_proxy', 'gateway.internal')
    assert Proxy.of_environment('http', '127.0.0.1') is None
    assert Proxy.of_environment('http', 'localhost') is None
    assert Proxy.of_environment('http', 'gateway.internal') is None
    assert Proxy.of_environment('http', 'gateway.example') == Proxy('proxy', 3128, {})


def test_tls_is_verified(tmp_path: object) -> None:
    key, cert = f'{tmp_path}/key.pem', f'{tmp_path}/cert.pem'
    make = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2']
    try:
        subprocess.run(
            [*make, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('openssl is not installed')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(('127.0.0.1', 0))

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(json_answer('{"a":1}'))
            except OSError:
                pass

    threading.Thread(target=serve, daemon=True).start()
    url = f'https://localhost:{listener.getsockname()[1]}'
    with pytest.raises(GatewayError, match='its certificate is not trusted'):
        Pool(url, None, 8).call('X', {}, 5)
    assert Pool(url, ssl.create_default_context(cafile=cert), 8).call('X', {}, 5) == {'a': 1}
    with pytest.raises(GatewayError, match='the server there does not speak TLS'):
        Pool(Scripted(b'HTTP/1.1 400 Bad\r\n\r\n').url.replace('http:', 'https:'), None, 8).call('X', {}, 5)


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='the system has no fork')
def test_a_forked_child_connects_anew(fake: FakeGateway) -> None:
    fake.allow('*')
    client = fake.client()
    assert client.check('a').allowed
    child = os.fork()
    if child == 0:
        ok = all(client.check('child').allowed for _ in range(20))
        os._exit(0 if ok else 1)
    for _ in range(20):
        assert client.check('parent').allowed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(check['action'] == 'child' for check in fake.checks) == 20


def test_many_threads_share_a_client(fake: FakeGateway) -> None:
    fake.allow('*')
    client = AgentClient(fake.url, 'a/b/c', TOKEN)
    answers: list[str] = []

    def work(at: int) -> None:
        for step in range(20):
            answers.append(client.check('tool.call', f'{at}-{step}').decision)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ['allow'] * 320
    assert len({check['resource'] for check in fake.checks}) == 320
    client.close()
