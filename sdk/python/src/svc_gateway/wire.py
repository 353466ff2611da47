"""The messages of the gateway, as Connect's JSON has them, and what they say."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, get_args

from .errors import GatewayError
from .types import (
    Action,
    AgentId,
    Approval,
    ApprovalState,
    CheckAnswer,
    Decision,
    DenialCause,
    Ended,
    Obligation,
    OpState,
    Period,
    Tier,
    Usage,
    UsageAnswer,
)

CHECK = 'PolicyService/CheckAction'
BATCH = 'PolicyService/BatchCheckActions'
REGISTER = 'AgentService/RegisterAgent'
COMPLETE = 'AgentService/CompleteOp'
RECORD_USAGE = 'AgentService/RecordUsage'
ACKNOWLEDGE = 'AgentService/AckOpControl'
WAIT_APPROVAL = 'ApprovalService/WaitApproval'
CANCEL_APPROVAL = 'ApprovalService/CancelApproval'

MAX_ERROR_BYTES = 1024

CAUSES = frozenset(get_args(DenialCause))
OP_STATES = frozenset(get_args(OpState))
TIERS = frozenset(get_args(Tier))
PERIODS = frozenset(get_args(Period))
APPROVAL_STATES = frozenset(get_args(ApprovalState))
DECISIONS = frozenset(get_args(Decision))


def new_trace_id() -> str:
    """32 hex digits, in the style of W3C Trace Context."""
    return secrets.token_hex(16)


def new_span_id() -> str:
    """16 hex digits."""
    return secrets.token_hex(8)


def agent_json(agent: AgentId) -> dict[str, str]:
    return {'orgId': agent.org_id, 'teamId': agent.team_id, 'agentId': agent.agent_id}


def require_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f'{name} must be a string')
    return value


def require_number(value: Any, name: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f'{name} must be a number')
    return value


def check_body(action: Action, agent: AgentId) -> dict[str, Any]:
    """The parts of a check that are the same in every attempt. The gateway validates what can be encoded at all."""
    body: dict[str, Any] = {
        'agent': agent_json(agent),
        'traceId': require_text(action.trace_id, 'trace_id'),
        'spanId': require_text(action.span_id, 'span_id'),
        'action': require_text(action.action, 'action'),
    }
    if action.resource is not None:
        body['resource'] = require_text(action.resource, 'resource')
    if action.attributes is not None:
        if not isinstance(action.attributes, Mapping):
            raise TypeError('attributes must be a mapping')
        body['attributes'] = dict(action.attributes)
    if action.estimated_cost_usd is not None:
        body['estimatedCostUsd'] = require_number(action.estimated_cost_usd, 'estimated_cost_usd')
    if action.caller is not None:
        body['caller'] = agent_json(AgentId.of(action.caller))
    if action.supported_obligations:
        if isinstance(action.supported_obligations, str):
            raise TypeError('supported_obligations must be a list of types')
        body['supportedObligations'] = [
            require_text(each, 'supported_obligations') for each in action.supported_obligations
        ]
    if action.dry_run:
        body['dryRun'] = True
    return body


def op_id_of(body: Mapping[str, Any]) -> str:
    return f'{body["traceId"]}:{body["spanId"]}'


def named(action: Action, trace_id: str | None) -> Action:
    """With both halves of the operation's id."""
    return replace(
        action,
        trace_id=action.trace_id if action.trace_id is not None else trace_id or new_trace_id(),
        span_id=action.span_id if action.span_id is not None else new_span_id(),
    )


def _word(value: Any, prefix: str, known: frozenset[str]) -> Any:
    """A word of a newer gateway reads as none."""
    word = value[len(prefix) :].lower() if isinstance(value, str) and value.startswith(prefix) else None
    return word if word in known else None


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    found = re.fullmatch(r'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z', value)
    if found is None:
        return None
    whole = datetime.strptime(found[1], '%Y-%m-%dT%H:%M:%S')
    return whole.replace(microsecond=int((found[2] or '0').ljust(6, '0')[:6]), tzinfo=timezone.utc)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value != '' else None


def answer_in(reply: Mapping[str, Any], op_id: str) -> CheckAnswer:
    """A decision that this client does not know is a deny."""
    decision: Decision = _word(reply.get('decision'), 'DECISION_', DECISIONS) or 'deny'
    audit_id = int(reply.get('auditId') or 0)
    return CheckAnswer(
        decision=decision,
        reason=str(reply.get('reason', '')),
        op_id=op_id,
        policy=_text(reply.get('policy')),
        rule_id=_text(reply.get('ruleId')),
        op_state=_word(reply.get('opState'), 'OP_STATE_', OP_STATES),
        audit_id=audit_id or None,
        approval_id=_text(reply.get('approvalId')),
        obligations=tuple(
            Obligation(str(each.get('id', '')), str(each.get('type', '')), each.get('properties') or {})
            for each in reply.get('obligations') or []
        ),
        cause=_word(reply.get('cause'), 'DECISION_CAUSE_', CAUSES),
        tier=_word(reply.get('tier'), 'BUDGET_TIER_', TIERS),
        period=_word(reply.get('period'), 'BUDGET_PERIOD_', PERIODS),
        resets_at=_time(reply.get('resetsAt')),
        remedy=_text(reply.get('remedy')),
    )


def error_in(error: Mapping[str, Any]) -> GatewayError:
    """The error of an item of a batch."""
    fault = str(error.get('code', ''))
    code = 'invalid_argument' if fault == 'invalid_argument' else 'unavailable'
    return GatewayError(
        code, str(error.get('message', '')), fault=fault, retry_after=float(error.get('retryAfterSecs') or 0)
    )


def approval_in(reply: Mapping[str, Any], approval_id: str) -> Approval:
    # A word of a newer gateway is no decision that this client could act on.
    state: ApprovalState = _word(reply.get('state'), 'APPROVAL_STATE_', APPROVAL_STATES) or 'pending'
    return Approval(approval_id, state, _text(reply.get('reason')), _time(reply.get('expiresAt')))


def usage_json(usage: Usage) -> dict[str, Any]:
    if (usage.cost_usd is None) == (usage.model is None):
        raise TypeError('usage is either cost_usd or model with its tokens')
    if usage.cost_usd is not None:
        return {'costUsd': require_number(usage.cost_usd, 'cost_usd')}
    fields = {'model': require_text(usage.model, 'model')}
    if usage.provider is not None:
        fields['provider'] = require_text(usage.provider, 'provider')
    tokens = {
        'inputTokens': usage.input_tokens,
        'outputTokens': usage.output_tokens,
        'cacheReadTokens': usage.cache_read_tokens,
        'cacheWriteTokens': usage.cache_write_tokens,
    }
    for name, count in tokens.items():
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise TypeError(f'{name} must be a whole number of tokens')
    return {**fields, **{name: count for name, count in tokens.items() if count is not None}}


def usage_answer_in(reply: Mapping[str, Any]) -> UsageAnswer:
    cost = reply.get('costUsd')
    cost_usd = float(cost) if isinstance(cost, (int, float)) else None
    if reply.get('status') != 'BUDGET_STATUS_LIMIT_EXCEEDED':
        return UsageAnswer('ok', cost_usd=cost_usd)
    tier, period = (
        _word(reply.get('tier'), 'BUDGET_TIER_', TIERS),
        _word(reply.get('period'), 'BUDGET_PERIOD_', PERIODS),
    )
    return UsageAnswer('limit_exceeded', tier, period, cost_usd)


def completion_json(op_id: str, ended: Ended) -> dict[str, Any]:
    body: dict[str, Any] = {'opId': require_text(op_id, 'op_id')}
    if ended.usage is not None:
        body.update(usage_json(ended.usage))
    if ended.failure is not None:
        body.update(
            outcome='OUTCOME_FAILURE', error=cut_to_bytes(require_text(ended.failure, 'error'), MAX_ERROR_BYTES)
        )
    elif ended.succeeded:
        body['outcome'] = 'OUTCOME_SUCCESS'
    return body


def cut_to_bytes(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, and whole characters."""
    return text.encode('utf-8', 'replace')[:most].decode('utf-8', 'ignore')
