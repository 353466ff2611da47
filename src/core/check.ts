/** One policy check, from identity to decision (spec: gRPC, CheckAction; States and transitions, rule 5). */
import type { AgentEntry, AgentRegistry } from './agents.ts';
import { lineageOfOrg, type AuditDraft, type AuditEvent, type Lineage } from './audit.ts';
import type { BudgetHandle, BudgetTracker } from './budget.ts';
import type { Exceeded } from './budget-envelope.ts';
import type { CheckCommand } from './commands.ts';
import type { Effect } from './effects.ts';
import type { Fault } from './fault.ts';
import { identify, REFUSAL, type Identified, type Speaker } from './identity.ts';
import { claimOf, effectsOfImpersonation } from './impersonation.ts';
import { microToUsd } from './money.ts';
import type { OpsRegistry, OpSlot } from './ops.ts';
import type { OpState } from './op-state.ts';
import type { Outcome } from './outcome.ts';
import type { CheckSubject } from './policy-condition.ts';
import type { PolicyDecision } from './policy-rule.ts';
import { redactText } from './redact-text.ts';
import { fail, ok, type Result } from './result.ts';

/** The parts of the governor's state that a check reads and changes. */
export type CheckState = {
  readonly agents: AgentRegistry;
  readonly ops: OpsRegistry;
  policies: { decide(subject: CheckSubject): PolicyDecision };
  /** Whether any stream is open; without one, no events are created. */
  isWatched: boolean;
  readonly budgets: BudgetTracker;
  readonly maxOps: number;
  /** How many of `maxOps` one org may have. */
  readonly maxOrgOps: number;
  /** Takes out of the attributes what an audit log must not hold. */
  readonly redact: (attributes: Readonly<Record<string, unknown>>) => unknown;
};

const deny = (reason: string): PolicyDecision => ({ kind: 'deny', reason, policy: undefined, ruleId: undefined });

const OTHER_AGENTS_OP = deny('the operation belongs to another agent; use a trace and span of your own');

/** Operations in these states take no further checks (contract: gRPC, rule 3). */
const CLOSED: Readonly<Partial<Record<OpState, PolicyDecision>>> = {
  paused: deny('the operation is paused; wait until an operator resumes it'),
  completing: deny('the operation is completing; start a new one'),
  terminated: deny('the operation is terminated; start a new one'),
};

/**
 * Answers a check: identify, ingest, evaluate, then allow or terminate. Each answer has exactly one audit entry among its effects.
 * Fault: `overloaded`, without an entry, when there is no room for a new operation.
 */
export function checkAction(state: CheckState, command: CheckCommand, nowMs: number): Outcome<'check'> {
  const identified = identify(state.agents, command.agent, command);
  if (identified.kind !== 'agent') return refuse(state, command, identified);
  if (command.credential !== undefined) state.agents.saw(identified.entry, nowMs);
  const slot = state.ops.find(command.opId);
  if (slot === undefined) return checkNew(state, command, identified, nowMs);
  if (state.ops.ownerOf(slot) !== identified.entry) return answer(state, command, identified, OTHER_AGENTS_OP, undefined, []);
  const opState = state.ops.stateOf(slot);
  const closed = CLOSED[opState];
  if (closed !== undefined) return answer(state, command, identified, closed, opState, []);
  if (command.dryRun) return rehearse(state, command, identified, slot, nowMs);
  return checkKnown(state, command, identified, slot, opState, nowMs);
}

/** A check of an operation that runs, or was registered beforehand. */
function checkKnown(state: CheckState, command: CheckCommand, speaker: Speaker, slot: OpSlot, from: OpState, nowMs: number): Outcome<'check'> {
  const heldMicroUsd = state.budgets.heldBy(slot);
  const outcome = evaluate(state, command, speaker, slot, nowMs, []);
  if (from === 'running' && state.budgets.heldBy(slot) === heldMicroUsd) return outcome;
  return { ...outcome, undo: { kind: 'op', opId: command.opId, number: state.ops.numberOf(slot), from, heldMicroUsd, acknowledgedAtMs: undefined } };
}

function checkNew(state: CheckState, command: CheckCommand, speaker: Speaker, nowMs: number): Outcome<'check'> {
  if (command.dryRun) return rehearse(state, command, speaker, undefined, nowMs);
  const full = refuseIfFull(state, speaker.entry);
  if (full !== undefined) return { reply: full, effects: [] };
  const slot = state.ops.ingest(command.opId, state.agents.keep(speaker.entry), nowMs);
  return evaluate(state, command, speaker, slot, nowMs, state.isWatched ? [changed(state, slot)] : []);
}

/**
 * The refusal of a new operation where all orgs together, or its own, have as many as they may; undefined where there is room.
 * Agents without an org do not count as an org.
 */
export function refuseIfFull({ ops, agents, maxOps, maxOrgOps }: CheckState, { identity: { orgId } }: AgentEntry): Result<never, Fault> | undefined {
  if (ops.size >= maxOps) return fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the registry of operations' });
  // While there are fewer operations in all than one org may have, no org can be full.
  if (orgId === '' || ops.size < maxOrgOps) return undefined;
  const ofOrg = agents.groups.orgs.get(orgId)?.opCount ?? 0;
  return ofOrg >= maxOrgOps ? fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the number of operations of this org' }) : undefined;
}

/** The answer that a check would get. Registers no operation and holds no money. */
function rehearse(state: CheckState, command: CheckCommand, speaker: Speaker, slot: OpSlot | undefined, nowMs: number): Outcome<'check'> {
  const opState = slot === undefined ? undefined : state.ops.stateOf(slot);
  const decision = state.policies.decide(command);
  const exceeded = decision.kind === 'allow' ? state.budgets.wouldExceed(speaker.entry.budget ?? speaker.entry.identity, command.estimatedCostMicroUsd, nowMs, slot) : undefined;
  return exceeded === undefined ? answer(state, command, speaker, decision, opState, []) : answerExceeded(state, command, speaker, exceeded, opState, []);
}

/** Decides, then moves the operation, so that the registry is right by the time the agent has its answer. */
function evaluate(state: CheckState, command: CheckCommand, speaker: Speaker, slot: OpSlot, nowMs: number, effects: Effect[]): Outcome<'check'> {
  const decision = state.policies.decide(command);
  const exceeded = decision.kind === 'allow' ? reserve(state, command, speaker.entry, slot, nowMs) : undefined;
  // A running operation outlives a later deny: its agent is told no, but only an operator ends it.
  if (state.ops.stateOf(slot) === 'pending') {
    state.ops.advance(slot, decision.kind === 'allow' && exceeded === undefined ? 'allow' : 'terminate', nowMs);
    if (state.isWatched) effects.push(changed(state, slot));
  }
  const opState = state.ops.stateOf(slot);
  return exceeded === undefined ? answer(state, command, speaker, decision, opState, effects) : answerExceeded(state, command, speaker, exceeded, opState, effects);
}

/** Holds the estimate in the same step as the decision, so that checks in parallel cannot overrun a cap together. */
function reserve(state: CheckState, command: CheckCommand, entry: AgentEntry, slot: OpSlot, nowMs: number): Exceeded | undefined {
  const reserved = state.budgets.reserve(budgetOf(state, entry), slot, command.estimatedCostMicroUsd, nowMs);
  return reserved.ok ? undefined : reserved.fault;
}

function budgetOf(state: CheckState, entry: AgentEntry): BudgetHandle {
  entry.budget ??= state.budgets.handleOf(entry.identity);
  return entry.budget;
}

/** Names the cap and not its amounts: what all orgs together spend is no agent's business. */
export const exceededReason = ({ tier, period }: Exceeded): string => `the ${period} budget of the ${tier} tier is exceeded`;

export const exceededPayload = ({ tier, period, spentMicroUsd, reservedMicroUsd, limitMicroUsd }: Exceeded) => ({
  tier,
  period,
  spent_usd: microToUsd(spentMicroUsd),
  reserved_usd: microToUsd(reservedMicroUsd),
  limit_usd: microToUsd(limitMicroUsd),
});

function answerExceeded(state: CheckState, command: CheckCommand, speaker: Speaker, exceeded: Exceeded, opState: OpState | undefined, effects: Effect[]): Outcome<'check'> {
  const decision = deny(exceededReason(exceeded));
  const payload = { ...payloadOf(state, command), ...exceededPayload(exceeded) };
  effects.push({ kind: 'audit', draft: draftOf('BudgetLimitExceeded', command, speaker.entry.identity, speaker.actor, decision, payload) });
  return { reply: ok({ decision: 'deny', reason: decision.reason, policy: undefined, ruleId: undefined, opState }), effects };
}

function answer(state: CheckState, command: CheckCommand, speaker: Speaker, decision: PolicyDecision, opState: OpState | undefined, effects: Effect[]): Outcome<'check'> {
  const isAllow = decision.kind === 'allow';
  const eventType: AuditEvent = !isAllow ? 'ActionDenied' : command.caller === undefined ? 'ActionAllowed' : 'A2ACallIntercepted';
  effects.push({ kind: 'audit', draft: draftOf(eventType, command, speaker.entry.identity, speaker.actor, decision, payloadOf(state, command)) });
  return { reply: ok({ decision: decision.kind, reason: decision.reason, policy: decision.policy, ruleId: decision.ruleId, opState }), effects };
}

/** No identity, no operation: the registry is not touched (contract: gRPC, rule 1). */
function refuse(state: CheckState, command: CheckCommand, refused: Exclude<Identified, Speaker>): Outcome<'check'> {
  const decision = deny(REFUSAL[refused.kind]);
  const reply = ok({ decision: decision.kind, reason: decision.reason, policy: undefined, ruleId: undefined, opState: undefined });
  const payload = payloadOf(state, command);
  if (refused.kind === 'no-credential' || refused.kind === 'unknown-credential') {
    return { reply, effects: [{ kind: 'audit', draft: draftOf('ActionDenied', command, command.agent, 'anonymous', decision, { ...payload, identity: 'unverified' }) }] };
  }
  if (refused.kind === 'org-out-of-reach') {
    // Recorded under the org of the credential's owner, not the claimed one: see effectsOfImpersonation.
    return { reply, effects: [{ kind: 'audit', draft: draftOf('A2AImpersonationAttempted', command, lineageOfOrg(refused.orgId), refused.actor, decision, { ...payload, ...claimOf(command.agent) }) }] };
  }
  return { reply, effects: effectsOfImpersonation({ owner: refused.owner, claimed: command.agent, action: command.action, opId: command.opId, payload }) };
}

function draftOf(eventType: AuditEvent, command: CheckCommand, about: Lineage, actor: string, decision: PolicyDecision, payload: Readonly<Record<string, unknown>>): AuditDraft {
  return {
    eventType,
    lineage: about,
    actor,
    opId: command.opId,
    decision: decision.kind,
    // Where no rule decided, the reason repeats what was asked for.
    reason: decision.ruleId === undefined ? redactText(decision.reason) : decision.reason,
    policy: decision.policy,
    ruleId: decision.ruleId,
    payload,
  };
}

function payloadOf(state: CheckState, command: CheckCommand): Readonly<Record<string, unknown>> {
  const { action, resource, attributes, estimatedCostMicroUsd, caller, dryRun } = command;
  const payload: Record<string, unknown> = { action: redactText(action), resource: redactText(resource) };
  if (attributes !== undefined) payload.attributes = state.redact(attributes);
  if (estimatedCostMicroUsd > 0) payload.estimated_cost_usd = microToUsd(estimatedCostMicroUsd);
  if (caller !== undefined) payload.caller = { org_id: caller.orgId === '' ? null : caller.orgId, team_id: caller.teamId, agent_id: caller.agentId };
  if (dryRun) payload.dry_run = true;
  return payload;
}

const changed = (state: CheckState, slot: OpSlot): Effect => ({ kind: 'op-changed', op: { ...state.ops.recordOf(slot), acknowledgedAtMs: undefined } });
