/** Decides checks again that the audit log has, by another set of policies (docs/spec.md, Policy). */
import type { AuditEntry, AuditEvent } from '../audit/audit.ts';
import { REDACTED } from '../audit/redact-text.ts';
import { isMapping } from '../base/mapping.ts';
import { usdToMicro } from '../base/money.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { ANSWER_OF, type Answer, type Decides } from './shadow.ts';

export type SkipReason =
  | 'redacted'
  | 'cut'
  | 'unidentified'
  | 'halt'
  | 'budget'
  | 'limit'
  | 'approval'
  | 'operation_state'
  | 'obligation'
  | 'refused';

/** Checks of one agent that are decided otherwise, and alike. */
export type ReplayChange = {
  readonly from: Answer;
  readonly to: Answer;
  /** By which rule; where none of the new set decides, the one that decided then. */
  readonly policy: string | undefined;
  readonly ruleId: string | undefined;
  readonly lineage: AuditEntry['lineage'];
  readonly action: string;
  readonly resource: string;
  readonly count: number;
  /** The first entry that was read of them. */
  readonly auditId: number;
};

export type ReplayResult = {
  /** All that were read, the skipped ones among them. */
  readonly checks: number;
  readonly same: number;
  readonly changed: number;
  readonly skipped: Readonly<Partial<Record<SkipReason, number>>>;
  /** The most frequent first. */
  readonly changes: readonly ReplayChange[];
};

/** As JSON (docs/spec.md, Policy). */
export const viewOfReplay = ({ changes, ...counts }: ReplayResult) => ({
  ...counts,
  changes: changes.map(({ policy, ruleId, lineage, auditId, ...change }) => ({
    ...change,
    ...lineage,
    policy: policy ?? null,
    rule_id: ruleId ?? null,
    audit_id: auditId,
  })),
});

type Recorded =
  | { readonly kind: 'check'; readonly subject: CheckSubject; readonly answer: Answer }
  | { readonly kind: 'skipped'; readonly reason: SkipReason };

/** The kinds of entries that are about checks. */
export const CHECK_EVENTS = [
  'ActionAllowed',
  'ActionDenied',
  'A2ACallIntercepted',
  'A2AImpersonationAttempted',
  'BudgetLimitExceeded',
  'ApprovalRequested',
] as const satisfies readonly AuditEvent[];
const IS_CHECK: ReadonlySet<string> = new Set(CHECK_EVENTS);

/** Causes of denies that do not come from the policies. */
const SKIPPED_CAUSES: Readonly<Record<string, SkipReason>> = {
  budget: 'budget',
  credential: 'unidentified',
  operation_state: 'operation_state',
  halt: 'halt',
  approval: 'approval',
  obligation: 'obligation',
  limit: 'limit',
  unrecorded: 'refused',
};

/** Undefined: the entry is about no check. */
function recordedCheck(entry: AuditEntry): Recorded | undefined {
  const { payload, event_type: eventType } = entry;
  if (!IS_CHECK.has(eventType) || typeof payload.action !== 'string') return undefined;
  const reason = skipReasonOf(entry);
  if (reason !== undefined) return { kind: 'skipped', reason };
  const { attributes, estimated_cost_usd: costUsd, caller, resource } = payload;
  const subject: CheckSubject = {
    agent: agentOf(entry.lineage),
    action: payload.action,
    resource: typeof resource === 'string' ? resource : '',
    attributes: isMapping(attributes) ? attributes : undefined,
    caller: isMapping(caller) ? agentOf(caller) : undefined,
    estimatedCostMicroUsd: typeof costUsd === 'number' ? (usdToMicro(costUsd) ?? 0) : 0,
  };
  return { kind: 'check', subject, answer: answerIn(entry) };
}

function answerIn({ event_type: eventType, decision }: AuditEntry): Answer {
  if (eventType === 'ApprovalRequested') return 'pending';
  return decision === 'allow' ? 'allow' : 'deny';
}

function skipReasonOf({ event_type: eventType, payload, cause, rule_id, decision, actor }: AuditEntry) {
  if (eventType === 'ApprovalRequested' && payload.limit !== undefined) return 'limit';
  // A request that an older release recorded does not say all that decided it.
  if (eventType === 'ApprovalRequested' && payload.attributes === undefined) return 'approval';
  if (eventType === 'A2AImpersonationAttempted' || actor === 'anonymous') return 'unidentified';
  if (eventType === 'BudgetLimitExceeded') return 'budget';
  if (decision === 'deny' && cause == null && rule_id === null) return 'refused';
  const skipped = cause == null ? undefined : SKIPPED_CAUSES[cause];
  if (skipped !== undefined) return skipped;
  if (payload.approval_id !== undefined && eventType !== 'ApprovalRequested') return 'approval';
  const { attributes } = payload;
  if (isMapping(attributes) && attributes.truncated === true && 'limit_bytes' in attributes) return 'cut';
  return JSON.stringify([payload.action, payload.resource, attributes]).includes(REDACTED) ? 'redacted' : undefined;
}

const agentOf = ({ org_id, team_id, agent_id }: Readonly<Record<string, unknown>>): CheckSubject['agent'] => ({
  orgId: typeof org_id === 'string' ? org_id : '',
  teamId: String(team_id),
  agentId: String(agent_id),
});

/** Kinds of changes that are told apart; further ones are only counted. */
const MAX_CHANGES = 10_000;

export class Replay {
  readonly #policies: Decides;
  #checks = 0;
  #same = 0;
  #changed = 0;
  readonly #skipped: Partial<Record<SkipReason, number>> = {};
  readonly #changes = new Map<string, { -readonly [Key in keyof ReplayChange]: ReplayChange[Key] }>();

  constructor(policies: Decides) {
    this.#policies = policies;
  }

  add(entry: AuditEntry): void {
    const recorded = recordedCheck(entry);
    if (recorded === undefined) return;
    this.#checks += 1;
    if (recorded.kind === 'skipped') {
      this.#skipped[recorded.reason] = (this.#skipped[recorded.reason] ?? 0) + 1;
      return;
    }
    const decided = this.#policies.decide(recorded.subject);
    const to = ANSWER_OF[decided.kind];
    if (to === recorded.answer) {
      this.#same += 1;
      return;
    }
    this.#changed += 1;
    const [policy, ruleId] =
      decided.ruleId === undefined
        ? [entry.policy ?? undefined, entry.rule_id ?? undefined]
        : [decided.policy, decided.ruleId];
    const { action, resource } = recorded.subject;
    const key = JSON.stringify([recorded.answer, to, policy, ruleId, entry.lineage, action, resource]);
    const known = this.#changes.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#changes.size < MAX_CHANGES) {
      const { lineage, id: auditId } = entry;
      const change = { from: recorded.answer, to, policy, ruleId, lineage, action, resource, count: 1, auditId };
      this.#changes.set(key, change);
    }
  }

  result(): ReplayResult {
    return {
      checks: this.#checks,
      same: this.#same,
      changed: this.#changed,
      skipped: { ...this.#skipped },
      changes: [...this.#changes.values()].sort((one, other) => other.count - one.count),
    };
  }
}
