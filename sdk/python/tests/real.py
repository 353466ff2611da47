"""The real gateway, built to dist/, for tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = ROOT / 'dist' / 'src' / 'cli' / 'main.js'
ADMIN_KEY = 'test-admin-key-0123456789-0123456789-0123456789'

POLICY = """
name: p
scope: global
rules:
  - { id: open, actions: ["*"], effect: allow }
  - { id: no, actions: [danger], effect: deny, reason: too dangerous }
  - { id: ask, actions: [pay], effect: require_approval, reason: money leaves }
  - id: refunds
    actions: [refund]
    effect: allow
    obligations:
      - { id: little, type: cap, path: amount, max: 100 }
      - { id: hide, type: redact, paths: [card.number, result.iban] }
      - { id: look, type: notify, message: a refund }
budget: { agent_daily_limit_usd: 50 }
"""


class RealGateway:
    """The built command in a process of its own, on free ports, with a data folder of its own."""

    def __init__(self, folder: Path, policy: str = POLICY, http: str = '127.0.0.1:0', **env: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'policy.yaml').write_text(policy)
        self._folder = folder
        self._env = {
            'PATH': os.environ['PATH'],
            'SVC_HTTP_ADDR': http,
            'SVC_GRPC_ADDR': '127.0.0.1:0',
            'SVC_DATA_DIR': str(folder / 'data'),
            'SVC_POLICY_PATH': str(folder / 'policy.yaml'),
            'SVC_BOOTSTRAP_API_KEY': ADMIN_KEY,
            'SVC_RATE_LIMIT_API': '0',
            'SVC_RATE_LIMIT_AUTH': '0',
            **env,
        }
        self.approver = ''
        self.start()

    def start(self) -> None:
        node = shutil.which('node') or pytest.skip('node is not installed')
        self.process = subprocess.Popen(
            [node, str(COMMAND), 'serve'], env=self._env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = ''
        ready = threading.Event()

        def read() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                self.output += line
                if line.startswith('  HTTP core'):
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        assert ready.wait(60), 'the gateway was not ready in time'
        found = re.search(r'HTTP +(http:\S+)', self.output)
        assert found, f'the gateway ended:\n{self.output}'
        self.url = found[1]
        self.grpc = re.search(r'gRPC +(\S+)', self.output)[1]  # type: ignore[index]
        # From now on at the same addresses, for a restart.
        self._env['SVC_HTTP_ADDR'] = self.url.removeprefix('http://')
        self._env['SVC_GRPC_ADDR'] = self.grpc

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def call(self, method: str, path: str, body: Any = None, bearer: str | None = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {'Authorization': f'Bearer {bearer or ADMIN_KEY}', 'Content-Type': 'application/json'},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{method} {path}: {error.code} {error.read().decode()}') from None
        return json.loads(text) if text else None

    def operate(self, op_id: str, verb: str) -> Any:
        return self.call('POST', f'/api/v1/ops/{op_id}/{verb}')

    def decide(self, approval_id: str, verb: str, reason: str = 'seen') -> Any:
        if not self.approver:
            made = self.call('POST', '/api/v1/iam/api-keys', {'name': 'boss', 'scopes': ['admin']})
            self.approver = made['key']
        return self.call('POST', f'/api/v1/approvals/{approval_id}/{verb}', {'reason': reason}, self.approver)

    def pending(self, agent_id: str) -> Any:
        """The approval that this agent waits for."""

        def found() -> Any:
            try:
                approvals = self.call('GET', '/api/v1/approvals?state=pending')['approvals']
            except OSError:
                return None  # it is starting
            return next((each for each in approvals if each['agent']['agent_id'] == agent_id), None)

        return eventually(found)

    def logged(self, op_id: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.call('GET', f'/api/v1/logs?op_id={op_id}')['entries']
        return entries


def eventually(look: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Returns what `look` finds, once that is something."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, 'it did not happen in time'
        time.sleep(0.02)
