/** Decides a policy check, from identity to decision (docs/spec.md, Checks). */
import type { AgentEntry } from '../agents/agent-entry.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import { identify, type Speaker } from '../agents/identify.ts';
import {
  type AskingContext,
  askPeople,
  endedFor,
  fullFor,
  hasRoomFor,
  joinWaiting,
  type Question,
  type Standing,
  standingOf,
  turnOf,
  useApproval,
} from '../approvals/asking.ts';
import { assertNever, fail, type Result } from '../base/result.ts';
import type { BudgetTracker } from '../budget/budget.ts';
import type { Exceeded } from '../budget/envelope.ts';
import { exceededReason } from '../budget/exceeded.ts';
import type { CheckCommand } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { Fault } from '../fault.ts';
import type { Halt } from '../halts/halt.ts';
import type { HaltRegistry } from '../halts/halts.ts';
import { askAboutLimit, useRaised, waitedFor } from '../limits/asking.ts';
import type { LimitTracker } from '../limits/limits.ts';
import type { Reached } from '../limits/reached.ts';
import type { OpEnd, OpState } from '../ops/op-state.ts';
import { viewOfOp } from '../ops/op-view.ts';
import type { OpSlot, OpsRegistry } from '../ops/ops.ts';
import type { Outcome } from '../outcome.ts';
import type { PolicyDecision } from '../policy/rule.ts';
import type { Decides, Shadow } from '../policy/shadow.ts';
import { type Answered, answer, isAllowed, NOT_ASKED, pending, withChanges, withUndo } from './answer.ts';
import { CheckEntries } from './entry.ts';
import { asks, byLimit, denyExceeded, denyReached, limitedOf } from './no-room.ts';
import {
  approvedBy,
  CLOSED,
  type ClosedState,
  deny,
  endedBy,
  fulfilled,
  haltedReason,
  OTHER_AGENTS_OP,
  TOO_MANY_WAIT,
} from './own-decisions.ts';
import { refuseCheck } from './refused.ts';
import { remedyOfHalt } from './remedy.ts';

/** The parts of the governor's state that a check reads and changes. */
export type CheckState = AskingContext & {
  readonly agents: AgentRegistry;
  readonly ops: OpsRegistry;
  /** With a shadow, it is asked beside the set in force. */
  policies: Decides;
  /** Decides nothing. Undefined, which costs a check one comparison: there is none. */
  shadow: Shadow | undefined;
  /** Whether any stream is open; without one, no events are created. */
  isWatched: boolean;
  /** In a cluster: the state of an operation of this agent and id at another gateway, if it is closed. */
  closedElsewhere: ((agent: AgentEntry['key'], opId: CheckCommand['opId']) => ClosedState | undefined) | undefined;
  /** Why every check is denied; undefined: it is not. */
  outage: string | undefined;
  readonly budgets: BudgetTracker;
  /** Undefined, which costs a check one comparison: no policy in force limits use. */
  limits: LimitTracker | undefined;
  readonly halts: HaltRegistry;
  readonly maxOps: number;
  /** How many of `maxOps` one org may have. */
  readonly maxOrgOps: number;
};

/** A final decision, with the approval it is by, and how a denied operation ends. */
type Settled = {
  readonly decision: PolicyDecision;
  readonly approvalId?: string;
  readonly end?: OpEnd;
  /** Marks a check that has an approval: a limit that leaves no room denies it, and asks nobody. */
  readonly isApproved?: true;
};

/** Answers checks: identify, ingest, evaluate, then allow or terminate. */
export class Checker {
  readonly #state: CheckState;
  readonly #entries: CheckEntries;

  constructor(state: CheckState) {
    this.#state = state;
    this.#entries = new CheckEntries(state.redact);
  }

  /**
   * Each answer has exactly one audit entry among its effects.
   * Fault: `overloaded`, without an entry, when there is no room for a new operation.
   */
  check(command: CheckCommand, nowMs: number): Outcome<'check'> {
    const { shadow } = this.#state;
    if (shadow === undefined) return this.#check(command, nowMs);
    shadow.begin();
    const outcome = this.#check(command, nowMs);
    // A check that has to wait for others is decided again.
    if (!outcome.reply.ok || outcome.short !== undefined || outcome.turn !== undefined) return outcome;
    shadow.finish(outcome.effects);
    return outcome;
  }

  #check(command: CheckCommand, nowMs: number): Outcome<'check'> {
    const { agents, halts, ops } = this.#state;
    const identified = identify(agents, command.agent, command);
    if (identified.kind !== 'agent') return refuseCheck(command, identified, this.#entries);
    if (command.credential !== undefined) agents.touch(identified.entry, nowMs);
    if (this.#state.outage !== undefined)
      return answer(this.#entries, command, identified, deny('credential', this.#state.outage), undefined);
    const halt = halts.covering(identified.entry, command.action);
    if (halt !== undefined) return this.#answerHalted(command, identified, halt);
    const slot = ops.find(command.opId, identified.entry.identity.orgId);
    if (slot === undefined) {
      const ended = endedFor(this.#state.approvals, command.agent.orgId, command.opId, nowMs);
      if (ended !== undefined)
        return answer(this.#entries, command, identified, endedBy(ended), undefined, ended.approval.id);
      const state = this.#state.closedElsewhere?.(identified.entry.key, command.opId);
      if (state !== undefined) return answer(this.#entries, command, identified, CLOSED[state]!, undefined);
      return this.#checkNew(command, identified, nowMs);
    }
    if (ops.ownerOf(slot) !== identified.entry)
      return answer(this.#entries, command, identified, OTHER_AGENTS_OP, undefined);
    const opState = ops.stateOf(slot);
    const closed = CLOSED[opState];
    if (closed !== undefined) return this.#answerClosed(command, identified, slot, closed, nowMs);
    if (command.dryRun) return this.#rehearse(command, identified, slot, nowMs);
    return this.#checkKnown(command, identified, slot, nowMs);
  }

  /** Before policy, and without an operation: nothing begins that a halt covers. */
  #answerHalted(command: CheckCommand, speaker: Speaker, halt: Halt): Answered {
    const { ops } = this.#state;
    const slot = ops.find(command.opId, speaker.entry.identity.orgId);
    const opState = slot !== undefined && ops.ownerOf(slot) === speaker.entry ? ops.stateOf(slot) : undefined;
    const decision = { ...deny('halt', haltedReason(halt)), remedy: remedyOfHalt(halt) };
    return answer(this.#entries, command, speaker, decision, opState);
  }

  /** An operation that takes no further checks: its approval says why, unless an operator or a halt has ended it. */
  #answerClosed(
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot,
    closed: PolicyDecision,
    nowMs: number,
  ): Answered {
    const { approvals, ops } = this.#state;
    const opState = ops.stateOf(slot);
    const end = ops.endOf(slot);
    const ended =
      end === 'denied' || end === 'expired' ? endedFor(approvals, command.agent.orgId, command.opId, nowMs) : undefined;
    return ended === undefined
      ? answer(this.#entries, command, speaker, closed, opState)
      : answer(this.#entries, command, speaker, endedBy(ended), opState, ended.approval.id);
  }

  #checkNew(command: CheckCommand, speaker: Speaker, nowMs: number): Outcome<'check'> {
    const { agents, ops, isWatched } = this.#state;
    if (command.dryRun) return this.#rehearse(command, speaker, undefined, nowMs);
    const full = refuseIfFull(this.#state, speaker.entry);
    if (full !== undefined) return { reply: full, effects: [] };
    const slot = ops.ingest(command.opId, agents.keep(speaker.entry), nowMs);
    this.#describe(command, slot);
    const registered = isWatched ? this.#changed(slot) : undefined;
    const outcome = this.#evaluate(command, speaker, slot, nowMs);
    if (outcome.short !== undefined || outcome.turn !== undefined) {
      ops.withdraw(slot);
      agents.dropIfUnused(speaker.entry);
      return outcome;
    }
    if (registered !== undefined) outcome.effects.unshift(registered);
    return outcome;
  }

  /** A check of an operation that runs, or was registered beforehand. */
  #checkKnown(command: CheckCommand, speaker: Speaker, slot: OpSlot, nowMs: number): Outcome<'check'> {
    const { budgets, ops } = this.#state;
    const from = ops.stateOf(slot);
    const heldMicroUsd = budgets.heldBy(slot);
    const heldUntilMs = budgets.heldUntilMs(slot);
    const about = from === 'running' && ops.isAction(slot, command.action) ? undefined : ops.aboutOf(slot);
    if (from === 'pending') this.#describe(command, slot);
    const outcome = this.#evaluate(command, speaker, slot, nowMs);
    if (from === 'running' && about !== undefined && isAllowed(outcome))
      ops.addAction(slot, this.#entries.shownAction(command.action));
    else if (from === 'running' && budgets.heldBy(slot) === heldMicroUsd && budgets.heldUntilMs(slot) === heldUntilMs)
      return outcome;
    // Set, not spread: this is the way of every further check of an operation that holds money.
    outcome.undo = withUndo(outcome.undo, {
      kind: 'op',
      slot,
      number: ops.numberOf(slot),
      from,
      about,
      heldMicroUsd,
      heldUntilMs,
      acknowledgedAtMs: undefined,
    });
    return outcome;
  }

  /** The answer that a check would get. Registers no operation and holds no money. */
  #rehearse(command: CheckCommand, speaker: Speaker, slot: OpSlot | undefined, nowMs: number): Answered {
    const { budgets, ops, policies } = this.#state;
    const opState = slot === undefined ? undefined : ops.stateOf(slot);
    const decided = policies.decide(command);
    const standing =
      decided.kind === 'require_approval' ? this.#standing(command, speaker, slot, decided, nowMs) : undefined;
    if (standing?.kind === 'over')
      return answer(this.#entries, command, speaker, endedBy(standing), opState, standing.approval.id);
    if (standing?.kind === 'waiting') return pending(decided, opState, standing.approval.id);
    if (standing?.kind === 'new') return pending(decided, opState, undefined);
    const decision = fulfilled(standing === undefined ? decided : approvedBy(standing.approval, decided), command);
    const reached =
      decision.kind === 'allow' && opState !== 'running' ? this.#reachedBy(command, speaker.entry, nowMs) : undefined;
    if (reached !== undefined) {
      const isAsking = standing === undefined && asks(reached);
      if (!isAsking) return denyReached(this.#entries, command, speaker, reached, opState);
      const waited = waitedFor(this.#state, command.agent.orgId, reached, nowMs);
      return pending(byLimit('require_approval', reached), opState, waited?.id);
    }
    const exceeded =
      decision.kind === 'allow'
        ? budgets.wouldExceed(
            speaker.entry.budget ?? speaker.entry.identity,
            command.estimatedCostMicroUsd,
            nowMs,
            slot,
          )
        : undefined;
    return exceeded === undefined
      ? answer(this.#entries, command, speaker, decision, opState)
      : this.#denyExceeded(command, speaker, exceeded, opState);
  }

  /** Decides, then moves the operation, so that the registry is right by the time the agent has its answer. */
  #evaluate(command: CheckCommand, speaker: Speaker, slot: OpSlot, nowMs: number): Answered {
    const decision = this.#state.policies.decide(command);
    return decision.kind === 'require_approval'
      ? this.#evaluateAsking(command, speaker, slot, decision, nowMs)
      : this.#settle(command, speaker, slot, { decision }, nowMs);
  }

  /** Decides by people's decisions, or asks people, and the operation waits. */
  #evaluateAsking(
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot,
    decision: PolicyDecision,
    nowMs: number,
  ): Answered {
    const standing = this.#standing(command, speaker, slot, decision, nowMs);
    const digest = turnOf(this.#state, standing);
    if (digest !== undefined) return { reply: NOT_ASKED, effects: [], turn: { digest } };
    const question = this.#questionOf(command, speaker, slot);
    switch (standing.kind) {
      case 'usable': {
        const { approval } = standing;
        const settled = {
          decision: approvedBy(approval, decision),
          approvalId: approval.id,
          isApproved: true,
        } as const;
        const answered = this.#settle(command, speaker, slot, settled, nowMs);
        const use = isAllowed(answered) ? useApproval(this.#state, approval, question, nowMs) : undefined;
        return use === undefined ? answered : withChanges(answered, [use]);
      }
      case 'over':
        return this.#settle(command, speaker, slot, overBy(standing), nowMs);
      case 'waiting': {
        const { approval } = standing;
        if (!hasRoomFor(approval, command.opId))
          return this.#settle(command, speaker, slot, { decision: TOO_MANY_WAIT, approvalId: approval.id }, nowMs);
        this.#wait(slot, decision, approval.id);
        const joined = joinWaiting(this.#state, approval, question, nowMs);
        return withChanges(pending(decision, this.#state.ops.stateOf(slot), approval.id), [joined]);
      }
      case 'new': {
        const full = fullFor(this.#state.approvals, command.agent);
        if (full !== undefined)
          return this.#settle(command, speaker, slot, { decision: deny('approval', `${full} is at its limit`) }, nowMs);
        const asked = askPeople(this.#state, question, { ...standing, decision }, nowMs);
        this.#wait(slot, decision, asked.approval.id);
        return withChanges(pending(decision, this.#state.ops.stateOf(slot), asked.approval.id), asked.changes);
      }
      default:
        return assertNever(standing);
    }
  }

  #questionOf(command: CheckCommand, { actor }: Speaker, slot: OpSlot | undefined): Question {
    const isRunning = slot !== undefined && this.#state.ops.stateOf(slot) === 'running';
    return { subject: command, opId: command.opId, actor, isRunning };
  }

  #standing(
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot | undefined,
    decision: PolicyDecision,
    nowMs: number,
  ): Standing {
    return standingOf(this.#state, this.#questionOf(command, speaker, slot), decision, nowMs);
  }

  /** Carries out a final decision. */
  #settle(
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot,
    { decision: decided, approvalId, end = 'denied', isApproved }: Settled,
    nowMs: number,
  ): Answered {
    const { ops, isWatched, limits } = this.#state;
    const decision = fulfilled(decided, command);
    const isLimited = limits !== undefined && decision.kind === 'allow' && ops.stateOf(slot) === 'pending';
    const reached = isLimited ? this.#reachedBy(command, speaker.entry, nowMs) : undefined;
    const lacking = isLimited ? limits.shortages(nowMs) : undefined;
    if (lacking !== undefined) return { reply: NOT_ASKED, effects: [], short: lacking };
    if (reached !== undefined) return this.#settleReached(command, speaker, slot, reached, isApproved === true, nowMs);
    const exceeded = decision.kind === 'allow' ? this.#reserve(command, speaker.entry, slot, nowMs) : undefined;
    if (exceeded?.doubt === 'short') return this.#short(command, speaker.entry, slot);
    // A running operation outlives a later deny: its agent is told no, but only an operator ends it.
    const isPending = ops.stateOf(slot) === 'pending';
    if (isPending) {
      ops.decide(slot, exceeded === undefined ? decision : deny('budget', exceededReason(exceeded)), approvalId);
      ops.advance(slot, decision.kind === 'allow' && exceeded === undefined ? 'allow' : 'terminate', nowMs, end);
    }
    const opState = ops.stateOf(slot);
    const outcome =
      exceeded === undefined
        ? answer(this.#entries, command, speaker, decision, opState, approvalId)
        : this.#denyExceeded(command, speaker, exceeded, opState);
    if (isPending && isWatched) outcome.effects.unshift(this.#changed(slot));
    return isLimited && exceeded === undefined ? this.#count(limits, outcome, command, speaker, slot, nowMs) : outcome;
  }

  /** Adds to the outcome what the limits have counted, in the same step as the decision. */
  #count(
    limits: LimitTracker,
    outcome: Answered,
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot,
    nowMs: number,
  ): Answered {
    const counted = limits.count(slot, this.#state.budgets.heldBy(slot), nowMs);
    if (counted === undefined) return outcome;
    outcome.effects.push({ kind: 'spend-recorded' });
    for (const alert of counted.alerts) outcome.effects.push({ kind: 'limit-alert', alert });
    outcome.undo = withUndo(outcome.undo, counted.undo);
    const used = useRaised(this.#state, this.#questionOf(command, speaker, slot), nowMs);
    return used === undefined ? outcome : withChanges(outcome, [used]);
  }

  #reachedBy(command: CheckCommand, entry: AgentEntry, nowMs: number): Reached | undefined {
    return this.#state.limits?.firstReached(limitedOf(command, entry), nowMs);
  }

  /** People are asked whether there may be more, and the operation waits; or it is denied. */
  #settleReached(
    command: CheckCommand,
    speaker: Speaker,
    slot: OpSlot,
    reached: Reached,
    isApproved: boolean,
    nowMs: number,
  ): Answered {
    const { limits, ops, isWatched } = this.#state;
    limits?.keepAlive(reached, nowMs);
    const question = this.#questionOf(command, speaker, slot);
    const asked = !isApproved && asks(reached) ? askAboutLimit(this.#state, question, reached, nowMs) : undefined;
    if (asked?.kind === 'turn') return { reply: NOT_ASKED, effects: [], turn: { digest: asked.digest } };
    if (asked?.kind === 'waits') {
      const decision = byLimit('require_approval', reached);
      this.#wait(slot, decision, asked.approval.id);
      return withChanges(pending(decision, ops.stateOf(slot), asked.approval.id), asked.changes);
    }
    const decision = byLimit('deny', reached, asked?.reason);
    ops.decide(slot, decision, undefined);
    ops.advance(slot, 'terminate', nowMs, 'denied');
    const outcome = denyReached(this.#entries, command, speaker, reached, ops.stateOf(slot), asked?.reason);
    if (isWatched) outcome.effects.unshift(this.#changed(slot));
    return outcome;
  }

  /** Describes a new operation. A running one keeps its description, whatever else is allowed to it. */
  #describe({ action, resource, estimatedCostMicroUsd }: CheckCommand, slot: OpSlot): void {
    const entries = this.#entries;
    this.#state.ops.describe(slot, entries.shownAction(action), entries.shownResource(resource), estimatedCostMicroUsd);
  }

  /** Notes why a pending operation waits. */
  #wait(slot: OpSlot, decision: PolicyDecision, approvalId: string): void {
    const { ops } = this.#state;
    if (ops.stateOf(slot) === 'pending') ops.decide(slot, decision, approvalId);
  }

  /** Nothing has changed: the check is to come again when the ledger has been asked. */
  #short({ estimatedCostMicroUsd }: CheckCommand, entry: AgentEntry, slot: OpSlot): Answered {
    const short = this.#state.budgets.shortagesOf(entry.budget ?? entry.identity, slot, estimatedCostMicroUsd);
    return { reply: NOT_ASKED, effects: [], short };
  }

  /** Holds the estimate in the same step as the decision, so that checks in parallel cannot overrun a cap together. */
  #reserve(command: CheckCommand, entry: AgentEntry, slot: OpSlot, nowMs: number): Exceeded | undefined {
    const { budgets } = this.#state;
    entry.budget ??= budgets.handleOf(entry.identity, entry.credential !== undefined);
    const reserved = budgets.reserve(entry.budget ?? entry.identity, slot, command.estimatedCostMicroUsd, nowMs);
    return reserved.ok ? undefined : reserved.fault;
  }

  #denyExceeded(command: CheckCommand, speaker: Speaker, exceeded: Exceeded, opState: OpState | undefined): Answered {
    const resetsAtMs = this.#state.budgets.resetsAtMs(exceeded.period);
    return denyExceeded(this.#entries, command, speaker, exceeded, resetsAtMs, opState);
  }

  #changed(slot: OpSlot): Effect {
    return { kind: 'op-changed', op: viewOfOp(this.#state.ops.recordOf(slot), undefined) };
  }
}

const overBy = (standing: Extract<Standing, { readonly kind: 'over' }>): Settled => ({
  decision: endedBy(standing),
  approvalId: standing.approval.id,
  end: standing.state === 'expired' ? 'expired' : 'denied',
});

/**
 * Refuses a new operation if the limit of all orgs, or of its own org, is reached; undefined if there is room.
 * Agents without an org do not count as an org.
 */
export function refuseIfFull(
  { ops, agents, maxOps, maxOrgOps }: CheckState,
  { identity: { orgId } }: AgentEntry,
): Result<never, Fault> | undefined {
  if (ops.size >= maxOps) return fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the operation registry' });
  // While there are fewer operations in all than one org may have, no org can be full.
  if (orgId === '' || ops.size < maxOrgOps) return undefined;
  const ofOrg = agents.groups.orgs.get(orgId)?.opCount ?? 0;
  return ofOrg >= maxOrgOps
    ? fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the number of operations in this org' })
    : undefined;
}
