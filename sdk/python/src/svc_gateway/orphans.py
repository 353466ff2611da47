"""Operations that nobody works on any more and that the gateway may count as running: reported when it is back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .transport import _after_fork
from .types import Ended
from .waits import backoff

#: With more than this, the oldest are forgotten: an outage must not fill the memory of the agent.
MAX_ORPHANS = 10_000


class Orphans:
    """The list, and one background thread that works it off while it is not empty."""

    def __init__(self, settle: Callable[[str, Ended], bool], on_warning: Callable[[Exception], None]) -> None:
        self._settle = settle
        self._on_warning = on_warning
        self._is_closed = False
        self._renew()
        _after_fork(self)

    def _renew(self) -> None:
        # After a fork, they are the parent's to report.
        self._owner = os.getpid()
        self._changed = threading.Condition()
        self._waiting: dict[str, Ended] = {}
        self._thread: threading.Thread | None = None

    def add(self, op_id: str, ended: Ended) -> None:
        forgotten: str | None = None
        with self._changed:
            self._waiting[op_id] = ended
            if len(self._waiting) > MAX_ORPHANS:
                forgotten = next(iter(self._waiting))
                del self._waiting[forgotten]
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name='svc-gateway-reports', daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if forgotten is not None:
            self._on_warning(
                RuntimeError(
                    f'operation {forgotten} may stay open at the gateway: too many wait until it can be reached'
                )
            )

    def close(self, timeout: float) -> None:
        """Waits up to `timeout` seconds for a last attempt at each."""
        with self._changed:
            self._is_closed = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _work(self) -> None:
        attempt = 0
        while True:
            with self._changed:
                due = list(self._waiting.items())
                if not due:
                    self._thread = None
                    return
            settled = [op_id for op_id, ended in due if self._is_settled(op_id, ended)]
            with self._changed:
                for op_id in settled:
                    self._waiting.pop(op_id, None)
                attempt = 0 if settled else attempt + 1
                if self._waiting and self._is_closed:
                    self._thread = None
                    return
                if self._waiting:
                    self._changed.wait(backoff(attempt, 0.25, 10))

    def _is_settled(self, op_id: str, ended: Ended) -> bool:
        try:
            return self._settle(op_id, ended)
        except Exception as error:  # nobody else is there to hear of it
            self._on_warning(error)
            return True
