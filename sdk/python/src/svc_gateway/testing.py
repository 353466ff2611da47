"""A gateway for tests: it decides by the rules that the test gives it, on a port of its own, without a policy file.

with FakeGateway() as gateway:
    gateway.allow('tool.call', 'web_*')
    gateway.require_approval('tool.call', 'pay')
    client = gateway.client()
    client.check('tool.call', 'web_search').allowed  # True
"""

from __future__ import annotations

import fnmatch
import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from .client import AgentClient, AsyncAgentClient
from .types import AgentLike

TOKEN = 'svcagent_fake_token_for_tests_0123456789'
AGENT = 'acme/test/agent'

_END_STATES = ('OP_STATE_COMPLETING', 'OP_STATE_TERMINATED')


@dataclass
class _Rule:
    effect: str
    action: str
    resource: str
    reason: str
    cause: str = 'rule'
    remedy: str = ''
    obligations: Sequence[Mapping[str, Any]] = ()

    def covers(self, action: str, resource: str) -> bool:
        return fnmatch.fnmatchcase(action, self.action) and fnmatch.fnmatchcase(resource, self.resource)


@dataclass
class FakeApproval:
    """An approval that is asked for: what for, and what has become of it."""

    id: str
    action: str
    resource: str
    attributes: Mapping[str, Any]
    op_id: str
    state: str = 'pending'
    reason: str = ''


@dataclass
class _Op:
    state: str = 'OP_STATE_PENDING'
    denied_by: FakeApproval | None = None
    outcome: str | None = None
    error: str = ''


@dataclass
class _State:
    rules: list[_Rule] = field(default_factory=list)
    ops: dict[str, _Op] = field(default_factory=dict)
    approvals: dict[str, FakeApproval] = field(default_factory=dict)
    #: The newest approval of each question.
    asked: dict[str, FakeApproval] = field(default_factory=dict)
    usage_ids: set[str] = field(default_factory=set)


class _Refusal(Exception):
    def __init__(self, status: int, code: str, fault: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.fault = status, code, fault


class FakeGateway:
    """Starts at once, on a free port of this machine. Denies what no rule allows, as the real one does.

    `checks`, `completed` and `usage` are what clients have sent so far, without their credentials.
    """

    def __init__(self) -> None:
        self.checks: list[dict[str, Any]] = []
        self.completed: list[dict[str, Any]] = []
        self.usage: list[dict[str, Any]] = []
        self._state = _State()
        self._changed = threading.Condition()
        self._clients: list[AgentClient] = []
        self._server = _server_of(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    def client(self, agent: AgentLike = AGENT, **options: Any) -> AgentClient:
        """A client of this gateway, with quick deadlines; closed together with it."""
        client = AgentClient(self.url, agent, TOKEN, **{'poll_interval': 0.05, 'approval_timeout': 30, **options})
        self._clients.append(client)
        return client

    def async_client(self, agent: AgentLike = AGENT, **options: Any) -> AsyncAgentClient:
        """As `client`, for asyncio; close it yourself."""
        return AsyncAgentClient(self.url, agent, TOKEN, **{'poll_interval': 0.05, 'approval_timeout': 30, **options})

    # --- rules: globs for actions and resources; deny wins, then require_approval, then allow ---

    def allow(self, action: str, resource: str = '*', *, obligations: Sequence[Mapping[str, Any]] = ()) -> None:
        """`obligations` are `{'id', 'type', 'properties'}`."""
        self._add(_Rule('allow', action, resource, 'allowed by the test', obligations=obligations))

    def deny(
        self,
        action: str,
        resource: str = '*',
        *,
        reason: str = 'denied by the test',
        cause: str = 'rule',
        remedy: str = '',
    ) -> None:
        self._add(_Rule('deny', action, resource, reason, cause, remedy))

    def require_approval(self, action: str, resource: str = '*', *, reason: str = 'people decide') -> None:
        self._add(_Rule('require_approval', action, resource, reason))

    def _add(self, rule: _Rule) -> None:
        with self._changed:
            self._state.rules.append(rule)

    # --- people ---

    @property
    def approvals(self) -> list[FakeApproval]:
        with self._changed:
            return list(self._state.approvals.values())

    def pending_approval(self, timeout: float = 10.0) -> FakeApproval:
        """The approval that is asked for, waiting up to `timeout` seconds for it. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._pending() is not None, timeout):
                raise TimeoutError('no approval is asked for')
            found = self._pending()
            assert found is not None
            return found

    def _pending(self) -> FakeApproval | None:
        return next((each for each in self._state.approvals.values() if each.state == 'pending'), None)

    def approve(self, approval_id: str | None = None, reason: str = '') -> FakeApproval:
        """Approves this request, or the one that is pending or comes next."""
        return self._decide(approval_id, 'approved', reason)

    def refuse(self, approval_id: str | None = None, reason: str = '') -> FakeApproval:
        """Denies this request, or the one that is pending or comes next."""
        return self._decide(approval_id, 'denied', reason)

    def _decide(self, approval_id: str | None, state: str, reason: str) -> FakeApproval:
        approval = self.pending_approval() if approval_id is None else self._state.approvals[approval_id]
        with self._changed:
            approval.state, approval.reason = state, reason
            if state == 'denied':
                self._state.ops[approval.op_id].denied_by = approval
            self._changed.notify_all()
        return approval

    # --- operators ---

    def pause(self, op_id: str) -> None:
        self._set(op_id, 'OP_STATE_PAUSED')

    def resume(self, op_id: str) -> None:
        self._set(op_id, 'OP_STATE_RUNNING')

    def terminate(self, op_id: str) -> None:
        self._set(op_id, 'OP_STATE_TERMINATED')

    def _set(self, op_id: str, state: str) -> None:
        with self._changed:
            self._state.ops[op_id].state = state

    def state_of(self, op_id: str) -> str:
        """`pending`, `running`, `paused`, `completing` or `terminated`. Raises KeyError."""
        with self._changed:
            return self._state.ops[op_id].state.removeprefix('OP_STATE_').lower()

    def running(self) -> list[str]:
        """The ids of the operations that are running."""
        with self._changed:
            return [op_id for op_id, op in self._state.ops.items() if op.state == 'OP_STATE_RUNNING']

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> FakeGateway:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the calls of clients ---

    def _answer(self, method: str, message: dict[str, Any], bearer: str | None) -> dict[str, Any]:
        if method == 'AgentService/RegisterAgent':
            return {'agent': message.get('agent'), 'credentialToken': TOKEN}
        is_check = method == 'PolicyService/CheckAction'
        if method == 'PolicyService/BatchCheckActions':
            return {'responses': [self._check(each) for each in message.get('requests', [])]}
        if is_check:
            return self._check(message)
        if message.get('credentialToken') != TOKEN and bearer is None:
            raise _Refusal(401, 'unauthenticated', 'unauthenticated', 'the credential is not valid')
        known = {
            'AgentService/CompleteOp': self._complete,
            'AgentService/RecordUsage': self._record,
            'AgentService/AckOpControl': lambda _message: {},
            'ApprovalService/WaitApproval': self._wait,
            'ApprovalService/CancelApproval': self._cancel,
        }.get(method)
        if known is None:
            raise _Refusal(404, 'unimplemented', 'not_found', f'there is no method {method}')
        return known(message)

    def _check(self, message: dict[str, Any]) -> dict[str, Any]:
        seen = {name: value for name, value in message.items() if name != 'credentialToken'}
        op_id = f'{message["traceId"]}:{message["spanId"]}'
        with self._changed:
            self.checks.append(seen)
            answer = {'opId': op_id, 'auditId': str(len(self.checks))}
            if message.get('credentialToken') != TOKEN:
                return {**answer, **_deny('the credential is not valid', 'credential')}
            decided = self._decided(message, op_id)
            op = self._state.ops.get(op_id)
            if op is not None:
                decided['opState'] = op.state
            self._changed.notify_all()
            return {**answer, **decided}

    def _decided(self, message: dict[str, Any], op_id: str) -> dict[str, Any]:
        is_dry = message.get('dryRun') is True
        op = self._state.ops.get(op_id)
        if op is not None and op.denied_by is not None:
            op.state = 'OP_STATE_TERMINATED'
            return _deny(op.denied_by.reason or 'people have denied it', 'approval', approvalId=op.denied_by.id)
        if op is not None and op.state in (*_END_STATES, 'OP_STATE_PAUSED'):
            return _deny(f'the operation is {op.state.removeprefix("OP_STATE_").lower()}', 'operation_state')
        if not is_dry and op is None:
            op = self._state.ops[op_id] = _Op()
        answer = self._by_rules(message, op_id, is_dry, op)
        if op is not None and not is_dry:
            if answer['decision'] == 'DECISION_ALLOW':
                op.state = 'OP_STATE_RUNNING'
            elif answer['decision'] == 'DECISION_DENY' and op.state == 'OP_STATE_PENDING':
                op.state = 'OP_STATE_TERMINATED'
        return answer

    def _by_rules(self, message: dict[str, Any], op_id: str, is_dry: bool, op: _Op | None) -> dict[str, Any]:
        action, resource = message.get('action', ''), message.get('resource', '')
        covering = [rule for rule in self._state.rules if rule.covers(action, resource)]
        rules = {rule.effect: rule for rule in reversed(covering)}
        if 'deny' in rules:
            return _deny(rules['deny'].reason, rules['deny'].cause, remedy=rules['deny'].remedy)
        if 'require_approval' in rules and not (op is not None and op.state == 'OP_STATE_RUNNING'):
            if is_dry:
                return {'decision': 'DECISION_PENDING', 'reason': rules['require_approval'].reason}
            approval = self._approval_of(message, op_id)
            if approval.state != 'approved':
                reason = rules['require_approval'].reason
                return {'decision': 'DECISION_PENDING', 'reason': reason, 'approvalId': approval.id}
            approval.state = 'used'
            return {'decision': 'DECISION_ALLOW', 'reason': 'approved', 'approvalId': approval.id}
        if not {'allow', 'require_approval'} & set(rules):
            return _deny(f'no rule of the test allows {action} on {resource or "nothing"}', 'no_rule')
        owed = [each for rule in covering if rule.effect == 'allow' for each in rule.obligations]
        unsupported = [each['type'] for each in owed if each['type'] not in message.get('supportedObligations', [])]
        if unsupported:
            return _deny(f'the obligation {unsupported[0]} is not supported', 'obligation')
        return {'decision': 'DECISION_ALLOW', 'reason': 'allowed by the test', 'obligations': owed}

    def _approval_of(self, message: dict[str, Any], op_id: str) -> FakeApproval:
        names = ('agent', 'action', 'resource', 'attributes', 'estimatedCostUsd')
        question = json.dumps({name: message.get(name) for name in names}, sort_keys=True)
        found = self._state.asked.get(question)
        if found is None or found.state not in ('pending', 'approved'):
            found = FakeApproval(
                str(uuid.uuid4()),
                message.get('action', ''),
                message.get('resource', ''),
                message.get('attributes') or {},
                op_id,
            )
            self._state.asked[question] = self._state.approvals[found.id] = found
        return found

    def _complete(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            op = self._state.ops.get(message.get('opId', ''))
            if op is None:
                raise _Refusal(404, 'not_found', 'not_found', f'no operation {message.get("opId")}')
            if op.state != 'OP_STATE_RUNNING':
                word = op.state.removeprefix('OP_STATE_').lower()
                raise _Refusal(400, 'failed_precondition', 'invalid_transition', f'cannot complete: it is {word}')
            op.state = 'OP_STATE_COMPLETING'
            self.completed.append({name: value for name, value in message.items() if name != 'credentialToken'})
            return {'opId': message['opId'], 'opState': op.state}

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            usage_id = message.get('usageId', '')
            if usage_id not in self._state.usage_ids:
                self._state.usage_ids.add(usage_id)
                self.usage.append({name: value for name, value in message.items() if name != 'credentialToken'})
            return {'status': 'BUDGET_STATUS_OK'}

    def _approval(self, message: dict[str, Any]) -> FakeApproval:
        approval = self._state.approvals.get(message.get('approvalId', ''))
        if approval is None:
            raise _Refusal(404, 'not_found', 'not_found', f'no approval {message.get("approvalId")}')
        return approval

    def _wait(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            approval = self._approval(message)
            self._changed.wait_for(lambda: approval.state != 'pending', 5.0)
            return _state_json(approval)

    def _cancel(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            approval = self._approval(message)
            if approval.state in ('pending', 'approved'):
                approval.state = 'cancelled'
            self._changed.notify_all()
            return _state_json(approval)


def _state_json(approval: FakeApproval) -> dict[str, Any]:
    state = f'APPROVAL_STATE_{approval.state.upper()}'
    return {'approvalId': approval.id, 'state': state, 'reason': approval.reason}


def _deny(reason: str, cause: str, **more: str) -> dict[str, Any]:
    return {'decision': 'DECISION_DENY', 'reason': reason, 'cause': f'DECISION_CAUSE_{cause.upper()}', **more}


def _server_of(gateway: FakeGateway) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get('content-length') or 0))
            bearer = self.headers.get('authorization')
            status, headers = 200, {}
            try:
                answer: dict[str, Any] = gateway._answer(
                    self.path.removeprefix('/svc.governance.v1.'), json.loads(body), bearer
                )
            except _Refusal as refusal:
                status, headers = refusal.status, {'svc-code': refusal.fault}
                answer = {'code': refusal.code, 'message': str(refusal)}
            except (ValueError, KeyError) as error:
                status, headers = 400, {'svc-code': 'invalid_argument'}
                answer = {'code': 'invalid_argument', 'message': f'malformed: {error!r}'}
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(text)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, _request: Any, _address: Any) -> None:
            """A client that goes away is no error."""

    return Server(('127.0.0.1', 0), Handler)
