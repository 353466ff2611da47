"""Signals of operators, by the control stream of gRPC where the extra `grpc` is installed and an address is given.

Without it, `checkpoint` asks the gateway for the state of the operation.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

from .errors import ClientClosedError, GatewayError
from .transport import _after_fork
from .types import OpSignal, Signal
from .waits import backoff, drive

if TYPE_CHECKING:
    from .core import Core
    from .ops import RunningOp

STREAM = '/svc.governance.v1.AgentService/OpControlStream'
SIGNALS: dict[int, Signal] = {1: 'pause', 2: 'resume', 3: 'terminate'}
KEEPALIVE = (('grpc.keepalive_time_ms', 20_000), ('grpc.keepalive_timeout_ms', 10_000))


class Control:
    """Delivers signals to running operations. Its thread starts with the first operation."""

    def __init__(self, core: Core) -> None:
        self._core = core
        if core.settings.grpc_address is not None:
            _grpc()  # an extra that is missing is found out here
        self._renew()
        _after_fork(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._ops: dict[str, RunningOp] = {}
        self._thread: threading.Thread | None = None
        self._call: Any = None
        self._closed = threading.Event()
        #: Whether signals arrive, so that nobody has to ask for them.
        self.is_connected = False

    def attach(self, op: RunningOp) -> None:
        """Raises ValueError where the client already runs this operation."""
        with self._lock:
            if op.op_id in self._ops:
                raise ValueError(f'operation {op.op_id} is already running')
            self._ops[op.op_id] = op
            if self._core.settings.grpc_address is not None and self._thread is None:
                self._thread = threading.Thread(target=self._keep_open, name='svc-gateway-signals', daemon=True)
                self._thread.start()

    def detach(self, op: RunningOp) -> None:
        with self._lock:
            if self._ops.get(op.op_id) is op:
                del self._ops[op.op_id]

    def close(self) -> None:
        self._closed.set()
        call = self._call
        if call is not None:
            call.cancel()

    def _keep_open(self) -> None:
        grpc = _grpc()
        settings = self._core.settings
        attempt = 0
        channel = (
            grpc.secure_channel(settings.grpc_address, grpc.ssl_channel_credentials(), KEEPALIVE)
            if settings.url.startswith('https:')
            else grpc.insecure_channel(settings.grpc_address, KEEPALIVE)
        )
        listen = channel.unary_stream(STREAM, request_serializer=_request, response_deserializer=_signal_in)
        while not self._closed.is_set():
            opened_at = time.monotonic()
            try:
                token = drive(self._core.token(self._core.thread_io, time.monotonic() + settings.call_timeout))
                self._call = listen((settings.agent, token))
                self._call.initial_metadata()  # returns when the stream is open
                self.is_connected = True
                for signal in self._call:
                    self._receive(signal)
            except (GatewayError, ClientClosedError, grpc.RpcError) as error:
                if getattr(error, 'code', None) is not None and self._is_refused(grpc, error):
                    settings.on_warning(GatewayError('unauthenticated', f'no signals arrive: {error}'))
                    break
            finally:
                self.is_connected = False
            attempt = 0 if time.monotonic() - opened_at > 5 else attempt + 1
            self._closed.wait(backoff(attempt, 2, 5))
        channel.close()

    @staticmethod
    def _is_refused(grpc: Any, error: Any) -> bool:
        refusals = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
        return isinstance(error, grpc.RpcError) and error.code() in refusals

    def _receive(self, signal: OpSignal | None) -> None:
        # A signal that this client does not know stays unacknowledged, for one that does.
        if signal is None:
            return
        with self._lock:
            op = self._ops.get(signal.op_id)
        is_done = op.obey(signal.signal, signal.sequence) if op is not None else False
        try:
            is_done = self._core.settings.on_signal(signal) is True or is_done
        except Exception as error:
            self._core.settings.on_warning(error)
        if is_done:
            # A report that does not arrive is sent again when the stream opens anew.
            with contextlib.suppress(GatewayError, ClientClosedError):
                drive(self._core.acknowledge(self._core.thread_io, signal.op_id, signal.sequence))


def _grpc() -> Any:
    try:
        import grpc
    except ImportError as error:
        raise ImportError("grpc_address needs the extra grpc: pip install 'svc-gateway[grpc]'") from error
    return grpc


# The two messages of the stream in protobuf's encoding, so that the extra needs no generated code.


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _request(request: Any) -> bytes:
    agent, token = request
    names = (agent.org_id, agent.team_id, agent.agent_id)
    inner = b''.join(_field(at + 1, name.encode()) for at, name in enumerate(names) if name)
    return _field(1, inner) + _field(2, token.encode())


def _signal_in(data: bytes) -> OpSignal | None:
    """None for a signal that this client does not know."""
    fields: dict[int, Any] = {1: b'', 2: 0, 3: 0}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 2:
            length = number()
            fields[key >> 3] = data[at : at + length]
            at += length
        else:
            at += 8 if key & 7 == 1 else 4
    signal = SIGNALS.get(fields[2])
    return None if signal is None else OpSignal(fields[1].decode(), signal, fields[3])
