"""The inputs and answers of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .errors import GatewayError

Decision = Literal['allow', 'deny', 'pending']
OpState = Literal['pending', 'running', 'paused', 'completing', 'terminated']
Signal = Literal['pause', 'resume', 'terminate']
Tier = Literal['global', 'org', 'team', 'agent']
Period = Literal['monthly', 'daily']
ApprovalState = Literal['pending', 'approved', 'denied', 'expired', 'cancelled', 'used']
#: Why an action was denied, in one word. A word that a newer gateway adds arrives as None.
DenialCause = Literal[
    'rule',
    'no_rule',
    'condition_error',
    'budget',
    'credential',
    'operation_state',
    'halt',
    'approval',
    'obligation',
    'unrecorded',
    'limit',
]
#: The obligations that this client can fulfil.
OBLIGATION_TYPES: tuple[str, ...] = ('redact', 'set', 'cap', 'notify')


@dataclass(frozen=True)
class AgentId:
    """Who the agent is. `org_id` is '' for an agent without an organization."""

    org_id: str
    team_id: str
    agent_id: str

    @staticmethod
    def of(agent: AgentLike) -> AgentId:
        """From `<org>/<team>/<agent>` (`-` for no organization), three names, or a mapping of them.

        Raises TypeError or ValueError with what is wrong.
        """
        if isinstance(agent, AgentId):
            return agent
        if isinstance(agent, str):
            parts = agent.split('/')
            if len(parts) != 3:
                raise ValueError(f'agent must be <org>/<team>/<agent>, such as acme/search/crawler-1, not {agent!r}')
            return AgentId._checked('' if parts[0] == '-' else parts[0], parts[1], parts[2])
        if isinstance(agent, Mapping):
            unknown = set(agent) - {'org_id', 'team_id', 'agent_id'}
            if unknown:
                raise TypeError(
                    f'agent has the unknown key {sorted(unknown)[0]!r}: it has org_id, team_id and agent_id'
                )
            return AgentId._checked(agent.get('org_id', ''), agent.get('team_id', ''), agent.get('agent_id', ''))
        if isinstance(agent, Sequence) and len(agent) == 3:
            return AgentId._checked(*agent)
        raise TypeError('agent must be <org>/<team>/<agent>, an AgentId, three names or a mapping of them')

    @staticmethod
    def _checked(org_id: Any, team_id: Any, agent_id: Any) -> AgentId:
        for name, value in (('org_id', org_id), ('team_id', team_id), ('agent_id', agent_id)):
            if not isinstance(value, str):
                raise TypeError(f'agent: {name} must be a string')
            if value == '' and name != 'org_id':
                raise ValueError(f'agent: {name} is empty')
        return AgentId(org_id, team_id, agent_id)

    def __str__(self) -> str:
        return f'{self.org_id or "-"}/{self.team_id}/{self.agent_id}'


AgentLike = AgentId | str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Action:
    """An action that an agent wants to take.

    `action` is `tool.call`, `llm.call`, `file.write`, `net.connect`, `process.exec` or any other name; `resource` is
    its target, up to 2048 bytes. `attributes` is what JSON can hold. `estimated_cost_usd`, 0 to 1,000,000 US dollars,
    is reserved in the budgets until the operation ends. `trace_id` defaults to that of the operation whose body is
    running, `span_id` to a new one. `supported_obligations` are the types that your code fulfils.
    """

    action: str
    resource: str | None = None
    attributes: Mapping[str, Any] | None = None
    estimated_cost_usd: float | None = None
    caller: AgentLike | None = None
    trace_id: str | None = None
    span_id: str | None = None
    supported_obligations: Sequence[str] | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Obligation:
    """An obligation of an allow for its caller: `redact`, `set`, `cap` or `notify`, with the type's properties."""

    id: str
    type: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class CheckAnswer:
    """The decision on one action, and where it comes from."""

    decision: Decision
    #: Why, in one sentence for people.
    reason: str
    #: `<trace_id>:<span_id>`.
    op_id: str
    policy: str | None = None
    rule_id: str | None = None
    #: None where the gateway does not say, such as for a dry run of an operation that is not known.
    op_state: OpState | None = None
    #: The audit entry that records the decision.
    audit_id: int | None = None
    #: The approval that a pending action waits for, or that has decided.
    approval_id: str | None = None
    obligations: tuple[Obligation, ...] = ()
    cause: DenialCause | None = None
    #: If a budget denied it: whose, and of which period.
    tier: Tier | None = None
    period: Period | None = None
    #: If a budget or a limit denied it: when it begins anew.
    resets_at: datetime | None = None
    #: What the agent may do instead, if the policy says so.
    remedy: str | None = None
    #: True when `on_unreachable` decided instead of the gateway.
    unreachable: bool = False
    #: In a batch: why this one could not be decided. It is a deny then.
    error: GatewayError | None = None

    @property
    def allowed(self) -> bool:
        return self.decision == 'allow'

    @property
    def trace_id(self) -> str:
        return self.op_id.partition(':')[0]

    @property
    def span_id(self) -> str:
        return self.op_id.partition(':')[2]


@dataclass(frozen=True)
class Approval:
    """The outcome so far of the approval that an action waits for."""

    approval_id: str
    state: ApprovalState
    #: The reason of the last decision.
    reason: str | None = None
    #: Until when it can be decided or, once approved, used.
    expires_at: datetime | None = None


@dataclass(frozen=True)
class UsageAnswer:
    """A usage record is always counted. `status` says whether spending is over a limit now."""

    status: Literal['ok', 'limit_exceeded']
    tier: Tier | None = None
    period: Period | None = None
    #: What the gateway counted, in US dollars; None if it does not say.
    cost_usd: float | None = None


@dataclass(frozen=True)
class Usage:
    """Money or tokens that were spent: either `cost_usd` or `model` with its tokens, which the gateway prices.

    `input_tokens` include those that were read from or written to a cache.
    """

    cost_usd: float | None = None
    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True)
class OpSignal:
    """An operator's order to an operation."""

    op_id: str
    signal: Signal
    #: Increases with each signal; a repeated signal keeps its number.
    sequence: int


@dataclass(frozen=True)
class Notice:
    """The text that a rule wants the operator to read of an action that it allows."""

    message: str
    op_id: str
    action: str
    resource: str | None = None


@dataclass
class Ended:
    """How an operation ended, as far as it is known."""

    succeeded: bool = False
    failure: str | None = None
    usage: Usage | None = field(default=None)
