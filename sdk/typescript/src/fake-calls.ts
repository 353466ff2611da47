/** A fake gateway's answers to agents: as the real one's, without its rules for money and people. */
import { FakePeople } from './fake-people.ts';
import type { Decide, Decided } from './policy.js';
import type { AgentId, JsonObject, OpState } from './types.ts';

type Json = Readonly<Record<string, unknown>>;

/** An operation at the fake gateway. */
export type FakeOp = {
  readonly opId: string;
  readonly action: string;
  readonly resource: string;
  readonly attributes: JsonObject;
  readonly state: OpState;
  readonly outcome: 'success' | 'failure' | undefined;
  readonly error: string | undefined;
};
type Kept = { -readonly [K in keyof FakeOp]: FakeOp[K] } & { approvalId: string | undefined };

/** An error of a call, in the words of the gateway. */
export class FakeRefusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly fault: string;

  constructor(status: number, code: string, fault: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.fault = fault;
  }
}

const LONGEST_WAIT_MS = 50_000;

export class FakeCalls {
  readonly people = new FakePeople();
  /** Every check that was asked, in order. */
  readonly checks: Json[] = [];
  readonly usage: Json[] = [];
  readonly #ops = new Map<string, Kept>();
  readonly #decide: () => Decide;

  constructor(decide: () => Decide) {
    this.#decide = decide;
  }

  get ops(): readonly FakeOp[] {
    return [...this.#ops.values()].map(({ approvalId: _, ...op }) => ({ ...op }));
  }

  /** An operator's order. */
  signal(opId: string, to: 'paused' | 'running' | 'terminated'): void {
    const op = this.#ops.get(opId);
    if (op === undefined) throw new Error(`there is no operation ${opId}`);
    op.state = to;
  }

  /** Resolves to the answer. Rejects with a FakeRefusal. */
  async answer(method: string, request: Json, signal: AbortSignal | null | undefined): Promise<Json> {
    switch (method) {
      case 'RegisterAgent':
        return { credentialToken: 'svcagent_of_the_fake_gateway', rotated: false };
      case 'CheckAction':
        return this.#check(request);
      case 'CompleteOp':
        return this.#complete(request);
      case 'RecordUsage':
        return this.#recordUsage(request);
      case 'AckOpControl':
        return {};
      case 'WaitApproval':
        return this.#waitApproval(String(request.approvalId), signal);
      case 'CancelApproval':
        return this.#cancelApproval(String(request.approvalId));
      default:
        throw new FakeRefusal(501, 'unimplemented', 'unimplemented', `the fake gateway has no ${method}`);
    }
  }

  #check({ credentialToken: _, ...request }: Json): Json {
    const { traceId, spanId, dryRun } = request;
    const opId = `${String(traceId)}:${String(spanId)}`;
    if (dryRun !== true) this.checks.push(request);
    const op = this.#ops.get(opId);
    if (op !== undefined && (op.state === 'paused' || op.state === 'completing' || op.state === 'terminated'))
      return this.#closed(opId, op);
    const decided = this.#decide()(askedIn(request));
    if (dryRun === true)
      return { ...answerOf(opId, decided), opState: op === undefined ? undefined : stateOf(op.state) };
    const kept = op ?? this.#begin(opId, request);
    const answered = decided.kind === 'require_approval' ? this.#asked(kept, decided) : answerOf(opId, decided);
    const supported = request.supportedObligations as readonly string[] | undefined;
    const unmet = answered.obligations?.find(({ type }) => supported?.includes(type) !== true);
    const answer: Answer =
      answered.decision !== 'DECISION_ALLOW' || unmet === undefined
        ? answered
        : {
            ...answered,
            decision: 'DECISION_DENY',
            cause: 'DECISION_CAUSE_OBLIGATION',
            reason: `the caller does not support the obligation ${unmet.id} of type ${unmet.type}`,
            obligations: [],
          };
    if (answer.decision === 'DECISION_ALLOW') kept.state = 'running';
    if (answer.decision === 'DECISION_DENY') kept.state = 'terminated';
    return { ...answer, opState: stateOf(kept.state), auditId: String(this.checks.length) };
  }

  #begin(opId: string, request: Json): Kept {
    const { action, resource, attributes } = askedIn(request);
    const op: Kept = {
      opId,
      action,
      resource,
      attributes: attributes ?? {},
      state: 'pending',
      outcome: undefined,
      error: undefined,
      approvalId: undefined,
    };
    this.#ops.set(opId, op);
    return op;
  }

  #closed(opId: string, op: Kept): Json {
    const approval = op.approvalId === undefined ? undefined : this.people.find(op.approvalId);
    const isByPeople = op.state === 'terminated' && approval?.state === 'denied';
    return {
      decision: 'DECISION_DENY',
      reason: isByPeople ? deniedBecause(approval.reason) : `the operation is ${op.state}`,
      cause: isByPeople ? 'DECISION_CAUSE_APPROVAL' : 'DECISION_CAUSE_OPERATION_STATE',
      approvalId: isByPeople ? approval.id : '',
      opId,
      opState: stateOf(op.state),
    };
  }

  /** A decision that is up to people. */
  #asked(op: Kept, decided: Decided): Answer {
    const { opId, action, resource, attributes } = op;
    const allowed = { ...answerOf(opId, decided), decision: 'DECISION_ALLOW' };
    const last = this.people.lastOn(decided.question, opId);
    if (last?.state === 'approved') {
      this.people.change(last.id, 'approved', 'used', last.reason);
      op.approvalId = last.id;
      return { ...allowed, approvalId: last.id };
    }
    if (last?.state === 'used' && op.approvalId === last.id && op.state === 'running')
      return { ...allowed, approvalId: last.id };
    if (last?.state === 'denied') {
      const reason = deniedBecause(last.reason);
      return { ...allowed, decision: 'DECISION_DENY', cause: 'DECISION_CAUSE_APPROVAL', reason, approvalId: last.id };
    }
    const approval =
      last?.state === 'pending' ? last : this.people.ask(decided.question, { opId, action, resource, attributes });
    op.approvalId = approval.id;
    return { ...answerOf(opId, decided), approvalId: approval.id, obligations: [] };
  }

  #complete({ opId, outcome, error }: Json): Json {
    const op = this.#ops.get(String(opId));
    if (op === undefined) throw new FakeRefusal(404, 'not_found', 'not_found', `there is no operation ${String(opId)}`);
    if (op.state !== 'running')
      throw new FakeRefusal(400, 'failed_precondition', 'invalid_transition', `the operation is ${op.state}`);
    op.state = 'completing';
    op.outcome = outcome === 'OUTCOME_FAILURE' ? 'failure' : 'success';
    op.error = typeof error === 'string' ? error : undefined;
    return { opId, opState: stateOf(op.state) };
  }

  #recordUsage({ credentialToken: _, ...usage }: Json): Json {
    if (!this.usage.some(({ usageId }) => usageId !== undefined && usageId === usage.usageId)) this.usage.push(usage);
    return { status: 'BUDGET_STATUS_OK' };
  }

  async #waitApproval(id: string, signal: AbortSignal | null | undefined): Promise<Json> {
    const isOver = (): boolean => signal?.aborted === true || this.people.find(id)?.state !== 'pending';
    await this.people.until(isOver, LONGEST_WAIT_MS);
    const approval = this.people.find(id);
    if (approval === undefined) throw new FakeRefusal(404, 'not_found', 'not_found', `there is no approval ${id}`);
    return { state: `APPROVAL_STATE_${approval.state.toUpperCase()}`, reason: approval.reason };
  }

  #cancelApproval(id: string): Json {
    const approval = this.people.find(id);
    if (approval === undefined) throw new FakeRefusal(404, 'not_found', 'not_found', `there is no approval ${id}`);
    if (approval.state !== 'pending')
      throw new FakeRefusal(400, 'failed_precondition', 'invalid_transition', `approval ${id} is ${approval.state}`);
    this.people.change(id, 'pending', 'cancelled');
    this.signal(approval.opId, 'terminated');
    return { state: 'APPROVAL_STATE_CANCELLED' };
  }
}

const deniedBecause = (reason: string): string => `a person has denied it${reason === '' ? '' : `: ${reason}`}`;

const stateOf = (state: OpState): string => `OP_STATE_${state.toUpperCase()}`;

function askedIn({ agent, action, resource, attributes, estimatedCostUsd, caller }: Json) {
  return {
    agent: agent as AgentId,
    action: String(action),
    resource: String(resource ?? ''),
    attributes: attributes as JsonObject | undefined,
    estimatedCostUsd: Number(estimatedCostUsd ?? 0),
    caller: caller as AgentId | undefined,
  };
}

type Answer = {
  readonly decision: string;
  readonly reason: string;
  readonly cause: string | undefined;
  readonly approvalId?: string;
  readonly obligations: NonNullable<Decided['obligations']>;
};

const DECISION_OF = { allow: 'DECISION_ALLOW', deny: 'DECISION_DENY', require_approval: 'DECISION_PENDING' } as const;

const answerOf = (opId: string, { kind, reason, policy, ruleId, cause, remedy, obligations = [] }: Decided) => ({
  opId,
  decision: DECISION_OF[kind] as string,
  reason,
  policy: policy ?? '',
  ruleId: ruleId ?? '',
  cause: cause === undefined ? undefined : `DECISION_CAUSE_${cause.toUpperCase()}`,
  remedy: remedy ?? '',
  obligations,
});
