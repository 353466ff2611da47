import { orgInReach } from './access.ts';
import type { AgentEntry } from './agents/agent-entry.ts';
import { type AgentRegistration, AgentRegistry } from './agents/agents.ts';
import { type AgentLimits, answerTopology, deregisterAgent, listAgents, registerAgent } from './agents/commands.ts';
import { effectsOfImpersonation, identify, type Speaker } from './agents/identify.ts';
import { METHOD_OF, type OwnCall } from './agents/own-calls.ts';
import { REFUSAL } from './agents/refusal.ts';
import { refuseAction } from './agents/refused-action.ts';
import type { Approval } from './approvals/approval.ts';
import { ApprovalRegistry } from './approvals/approvals.ts';
import {
  applyToApprovals,
  cancelOwnApproval,
  coveredBy,
  haltApprovals,
  leaveApprovals,
  readOwnApproval,
  thawApprovals,
} from './approvals/commands.ts';
import { approvalContextOf } from './approvals/context.ts';
import { type ApprovalContext, withSteps } from './approvals/steps.ts';
import type { AuditDraft, AuditEvent } from './audit/audit.ts';
import { redactText } from './audit/redact-text.ts';
import { type AgentKey, agentKeyOf, type OpId } from './base/ids.ts';
import { BAD_CURSOR } from './base/page.ts';
import { assertNever, fail, ok, type Result } from './base/result.ts';
import type { BudgetTracker } from './budget/budget.ts';
import { recordUsage } from './budget/record-usage.ts';
import { parseBudgetCursor } from './budget/status.ts';
import { Checker, type CheckState, refuseIfFull } from './check/check.ts';
import type { Command, CommandOf, CommandType, Completion, Replies } from './commands.ts';
import type { Effect } from './effects.ts';
import type { Fault } from './fault.ts';
import {
  adoptHalt,
  createHalt,
  enforceHalt,
  type HaltContext,
  listHalts,
  type MoveOp,
  releaseHalt,
  resumeHalted,
} from './halts/commands.ts';
import type { Halt } from './halts/halt.ts';
import { HaltRegistry } from './halts/halts.ts';
import { seesOrg } from './identity/roles.ts';
import type { CompiledLimit } from './limits/compiled.ts';
import { type LimitOptions, LimitTracker } from './limits/limits.ts';
import { pageOfOps } from './listings/ops-page.ts';
import { isFinished, type OpEnd } from './ops/op-state.ts';
import { viewOfOp } from './ops/op-view.ts';
import { type OpSlot, OpsRegistry } from './ops/ops.ts';
import { SignalBoxes } from './ops/signals.ts';
import { type Outcome, unchanged } from './outcome.ts';
import { completionPayload } from './prices/payload.ts';
import { type Begun, type OpUndo, rollBack, terminateBegun, type Undo } from './rollback.ts';
import type { ControlTrigger, OpView, SignalMessage } from './views.ts';

export type GovernorOptions = Pick<
  CheckState,
  'policies' | 'budgets' | 'maxOps' | 'maxOrgOps' | 'redact' | 'newApprovalId' | 'sha256'
> &
  AgentLimits &
  Pick<LimitOptions, 'sessionTtlMs' | 'grants'> & {
    /** How long a finished operation stays readable (docs/spec.md, States and transitions). */
    readonly sweepTtlMs: number;
    /** `HASH_KEY_LENGTH` random numbers. They affect only where things lie in memory. */
    readonly hashKey: Int32Array;
    readonly maxLimitStates: number;
  };

type Moved = { readonly reply: Result<OpView, Fault>; readonly effects: readonly Effect[]; readonly undo?: Undo };
/** A move of an operation, and what is said with it. */
type Move = {
  readonly trigger: ControlTrigger;
  /** How it ends, if the trigger ends it; undefined: as the trigger says. */
  readonly end?: OpEnd;
  readonly error?: string | undefined;
  /** Takes the place of the reason for which it was to wait. */
  readonly reason?: string;
  readonly actor: string;
  readonly payload?: AuditDraft['payload'] | undefined;
};
type Refusal = { readonly reply: Result<never, Fault>; readonly effects: readonly Effect[] };

const EVENT_OF: Readonly<Record<ControlTrigger, AuditEvent>> = {
  pause: 'OpPaused',
  resume: 'OpResumed',
  terminate: 'OpTerminated',
  complete: 'OpCompleted',
};

/** Limits the operations that one sweep removes, unless its caller says otherwise. */
const SWEEP_SLICE = 5_000;

/**
 * The one writer of everything that is decided: operations, agents, policy. Synchronous, without I/O, and time is an
 * argument, so "identify, ingest, evaluate, allow or terminate" is one step that nothing can come between.
 */
export class Governor {
  readonly agents = new AgentRegistry((entry) => {
    if (entry.budget !== undefined) this.budgets.forget(entry.budget);
  });
  readonly ops: OpsRegistry;
  readonly budgets: BudgetTracker;
  readonly halts = new HaltRegistry(this.agents);
  readonly approvals = new ApprovalRegistry();
  readonly limits: LimitTracker;
  readonly #signals = new SignalBoxes();
  readonly #haltContext: HaltContext;
  readonly approvalContext: ApprovalContext;
  readonly #state: CheckState;
  readonly #checker: Checker;
  readonly #agentLimits: AgentLimits;
  #inForce: CheckState['policies'];
  readonly #sweepTtlMs: number;
  /** Called for each operation that leaves the registry. */
  onSwept: ((agent: AgentKey, opId: OpId) => void) | undefined;

  constructor({
    maxAgents,
    maxOrgAgents,
    sweepTtlMs,
    hashKey,
    maxLimitStates,
    sessionTtlMs,
    grants,
    ...given
  }: GovernorOptions) {
    this.ops = new OpsRegistry(hashKey);
    this.budgets = given.budgets;
    const firstOf = (key: AgentKey): AgentKey => this.agents.firstOf(key);
    this.limits = new LimitTracker({ maxStates: maxLimitStates, sessionTtlMs, firstOf, grants });
    this.budgets.onHeld = (op, microUsd) => this.limits.follow(op, microUsd);
    this.#state = {
      ...given,
      agents: this.agents,
      ops: this.ops,
      halts: this.halts,
      approvals: this.approvals,
      limits: undefined,
      isWatched: false,
      closedElsewhere: undefined,
      outage: undefined,
      turns: undefined,
      shadow: undefined,
    };
    this.#inForce = given.policies;
    this.#checker = new Checker(this.#state);
    this.#agentLimits = { maxAgents, maxOrgAgents };
    this.#sweepTtlMs = sweepTtlMs;
    this.approvalContext = approvalContextOf(
      this,
      () => this.#state.turns,
      (slot, move, nowMs) => this.#move(slot, { trigger: 'terminate', ...move }, nowMs),
    );
    this.#haltContext = { agents: this.agents, halts: this.halts, ops: this.ops };
  }

  /** Puts a new policy set in force, from the next check on. */
  set policies(policies: CheckState['policies']) {
    this.#inForce = policies;
    this.#state.policies = this.#state.shadow?.beside(policies) ?? policies;
  }

  /** Asks this set, too, from the next check on. Undefined: none. */
  set shadow(shadow: CheckState['shadow']) {
    this.#state.shadow = shadow;
    this.policies = this.#inForce;
  }

  /** Puts these limits in force, from the next check on. */
  set limitsInForce(limits: readonly CompiledLimit[]) {
    this.limits.reconfigure(limits);
    this.#state.limits = this.limits.isAny ? this.limits : undefined;
  }

  /** Whether anybody watches operations. While nobody does, no events are made. */
  set isWatched(isWatched: boolean) {
    this.#state.isWatched = isWatched;
  }

  /** See `CheckState`. */
  set closedElsewhere(closedElsewhere: CheckState['closedElsewhere']) {
    this.#state.closedElsewhere = closedElsewhere;
  }

  /** Why every check is denied, until it is undefined again. */
  get outage(): string | undefined {
    return this.#state.outage;
  }

  set outage(outage: string | undefined) {
    this.#state.outage = outage;
  }

  /** Set if gateways share approvals. */
  set approvalTurns(turns: CheckState['turns']) {
    this.#state.turns = turns;
  }

  /** Restores a registration of an earlier run. */
  restoreAgent(registration: AgentRegistration): void {
    this.agents.register(registration);
  }

  /** Restores an approval of an earlier run; call it for the oldest first. */
  restoreApproval(approval: Approval): void {
    this.approvals.put(approval);
  }

  /** Restores a halt of an earlier run, in force or released. */
  restoreHalt(halt: Halt): void {
    this.halts.put(halt);
  }

  /**
   * Carries out one command. The reply is for the caller, a fault included; the effects are for the shell, in their
   * order. `nowMs` counts from the Unix epoch, and is never less than in an earlier call, or the latest of `setBack`.
   */
  apply<T extends CommandType>(command: CommandOf<T>, nowMs: number): Outcome<T>;
  apply(command: Command, nowMs: number): Outcome {
    switch (command.type) {
      case 'check':
        return this.#checker.check(command, nowMs);
      case 'refuse-action':
        return refuseAction(this.agents, command);
      case 'find-agent':
        return unchanged(ok({ agent: this.agents.ownerOf(command.credential)?.identity }));
      case 'recognize-agent':
        return unchanged(ok({ isIts: this.#recognizes(command) }));
      case 'register-op':
        return this.#registerOp(command, nowMs);
      case 'control-op':
        return this.#controlOp(command, nowMs);
      case 'complete-op':
        return this.#completeOp(command, nowMs);
      case 'get-op':
        return unchanged(this.#getOp(command));
      case 'list-ops':
        return unchanged(this.#listOps(command));
      case 'register-agent':
        return registerAgent(this.agents, this.#agentLimits, command, nowMs);
      case 'deregister-agent':
        return deregisterAgent(this.agents, command);
      case 'list-agents':
        return unchanged(listAgents(this.agents, command));
      case 'topology-overview':
      case 'topology-team':
      case 'topology-tree':
      case 'topology-lineage':
      case 'topology-stats':
        return unchanged(answerTopology(this.agents, this.ops.counts, command, nowMs));
      case 'record-usage':
        return this.#recordUsage(command, nowMs);
      case 'list-budgets':
        return unchanged(this.#listBudgets(command, nowMs));
      case 'open-control':
        return this.#openControl(command, nowMs);
      case 'ack-signal':
        return this.#acknowledge(command, nowMs);
      case 'create-halt':
        return this.#createHalt(command, nowMs);
      case 'release-halt':
        return this.#releaseHalt(command, nowMs);
      case 'list-halts':
        return unchanged(listHalts(this.#haltContext, command));
      case 'enforce-halt':
        return enforceHalt(this.#haltContext, command, this.#mover(nowMs));
      case 'resume-halted':
        return resumeHalted(this.#haltContext, command, this.#mover(nowMs));
      case 'own-approval':
        return this.#ownApproval(command, nowMs);
      case 'cancel-own-approval':
        return this.#cancelOwnApproval(command, nowMs);
      case 'adopt-halt':
        return unchanged(adoptHalt(this.#haltContext, command));
      default:
        return applyToApprovals(this.approvalContext, command, nowMs);
    }
  }

  /** The clock was set back: whatever lies ahead of it would otherwise wait until it is there again. */
  setBack(nowMs: number): void {
    this.ops.setBack(nowMs);
    this.budgets.expire(nowMs);
    // Shared ones end by the clock of the database.
    if (this.#state.turns === undefined) this.approvals.setBack(nowMs);
  }

  /**
   * Removes at most `most` of the operations that finished long enough ago, and some budgets that nobody needs. True
   * when more are due.
   */
  sweep(nowMs: number, most = SWEEP_SLICE): boolean {
    const removed = this.ops.sweep(nowMs, this.#sweepTtlMs, most, (opId, owner, number, slot) => {
      this.#signals.forget({ agent: owner.key, slot, number });
      this.limits.forget(slot);
      this.onSwept?.(owner.key, opId);
      this.agents.dropIfUnused(owner);
    });
    this.budgets.expire(nowMs);
    this.budgets.sweep(nowMs);
    this.limits.sweep(nowMs);
    return removed === most || this.budgets.isSweepDue;
  }

  /**
   * Puts a signal into the agent's box, after its cause was recorded; undefined when its operation is gone, or has
   * completed. The latter's signals stay in the box, out of sight, because a completion may be rolled back.
   */
  post(effect: Extract<Effect, { kind: 'signal' }>, nowMs: number): SignalMessage | undefined {
    const { slot, number, opId, signal } = effect;
    if (!this.ops.holds(slot, number)) return undefined;
    const sequence = this.#signals.post(effect, signal, nowMs, effect.sequence);
    if (sequence === undefined) return undefined;
    return this.ops.stateOf(slot) === 'completing' ? undefined : { opId, signal, sequence };
  }

  /**
   * Rolls back a batch that could not be recorded: the `undos` of its commands, given in their order, and those of the
   * operations that its `checks` began, whose numbers are above `lastBefore`. All that came after the batch
   * must be undone already. What the shell must do for that is not recorded either.
   */
  rollBack(undos: readonly Undo[], checks: readonly Begun[], lastBefore: number, nowMs: number): readonly Effect[] {
    const registries = {
      agents: this.agents,
      ops: this.ops,
      budgets: this.budgets,
      signals: this.#signals,
      halts: this.halts,
      approvals: this.approvals,
      limits: this.limits,
    };
    const undone = undos.toReversed().flatMap((undo) => rollBack(registries, undo, nowMs));
    return [...undone, ...terminateBegun(registries, checks, lastBefore, nowMs)];
  }

  #recognizes({ agent, credential }: CommandOf<'recognize-agent'>): boolean {
    return identify(this.agents, agent, { credential, principal: undefined }).kind === 'agent';
  }

  #registerOp({ principal, opId, agent }: CommandOf<'register-op'>, nowMs: number): Outcome<'register-op'> {
    if (!seesOrg(principal, agent.orgId)) return unchanged(fail({ kind: 'org_forbidden', orgId: agent.orgId }));
    const known = this.ops.find(opId, agent.orgId);
    if (known !== undefined) {
      const owner = this.ops.ownerOf(known);
      if (owner.key === agentKeyOf(agent)) return unchanged(ok({ op: this.#viewOf(known), created: false }));
      return unchanged(fail({ kind: 'conflict', detail: `operation ${opId} belongs to another agent` }));
    }
    const entry = this.agents.lookUp(agent);
    const halt = this.halts.coveringAll(entry);
    if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
    const full = refuseIfFull(this.#state, entry);
    if (full !== undefined) return unchanged(full);
    const slot = this.ops.ingest(opId, this.agents.keep(entry), nowMs);
    return {
      reply: ok({ op: this.#viewOf(slot), created: true }),
      effects: this.#moved(slot, 'OpRegistered', principal.subject),
      undo: {
        kind: 'op',
        slot,
        number: this.ops.lastNumber,
        from: 'absent',
        about: undefined,
        heldMicroUsd: 0,
        heldUntilMs: 0,
        acknowledgedAtMs: undefined,
      },
    };
  }

  #controlOp(command: CommandOf<'control-op'>, nowMs: number): Outcome<'control-op'> {
    const { principal, trigger } = command;
    const found = this.#visible(command);
    if (!found.ok) return unchanged(found);
    const slot = found.value;
    if (trigger === 'resume') {
      const halt = this.#haltOf(slot);
      if (halt !== undefined) return unchanged(fail({ kind: 'halted', haltId: halt.id, reason: halt.reason }));
    }
    const actor = principal.subject;
    if (trigger === 'complete') return this.#complete(slot, actor, command, nowMs);
    const isWaiting = trigger === 'terminate' && this.ops.stateOf(slot) === 'pending';
    const moved = this.#move(slot, { trigger, actor }, nowMs);
    if (!isWaiting || moved.undo === undefined) return moved;
    const left = { agent: this.ops.ownerOf(slot).identity, opId: command.opId, actor };
    return withSteps(moved, moved.undo, leaveApprovals(this.approvalContext, left, nowMs));
  }

  #completeOp(command: CommandOf<'complete-op'>, nowMs: number): Outcome<'complete-op'> {
    const speaker = this.#speakerOf(command, nowMs);
    if ('reply' in speaker) return speaker;
    const slot = this.#ownedBy(speaker.entry, command.opId);
    if (!slot.ok) return unchanged(slot);
    return this.#complete(slot.value, speaker.actor, command, nowMs);
  }

  #complete(slot: OpSlot, actor: string, { outcome, error, priced }: Completion, nowMs: number): Moved {
    const end = outcome === 'failure' ? 'failed' : 'completed';
    const shown = error === undefined ? undefined : redactText(error);
    const payload = completionPayload(outcome, shown, priced);
    return this.#move(slot, { trigger: 'complete', end, error: shown, actor, payload }, nowMs);
  }

  #getOp(command: CommandOf<'get-op'>): Replies['get-op'] {
    const slot = this.#visible(command);
    return slot.ok ? ok(this.#viewOf(slot.value)) : slot;
  }

  #listOps(command: CommandOf<'list-ops'>): Replies['list-ops'] {
    const org = orgInReach(command.principal, command.orgId);
    if (!org.ok) return org;
    const page = pageOfOps(this, { ...command, orgId: org.value });
    if (page === undefined) return BAD_CURSOR;
    return ok({ items: page.items.map((slot) => this.#viewOf(slot)), next: page.next });
  }

  #recordUsage(command: CommandOf<'record-usage'>, nowMs: number): Outcome<'record-usage'> {
    const speaker = this.#speakerOf(command, nowMs);
    if ('reply' in speaker) return speaker;
    // The money was spent, even if the operation is gone, never existed or belongs to another org.
    const owned = command.opId === undefined ? undefined : this.#ownedBy(speaker.entry, command.opId);
    if (owned !== undefined && !owned.ok && owned.fault.kind !== 'not_found') return unchanged(owned);
    return recordUsage(this, speaker, owned?.ok === true ? owned.value : undefined, command, nowMs);
  }

  #listBudgets(
    { principal, orgId, perPage, cursor }: CommandOf<'list-budgets'>,
    nowMs: number,
  ): Replies['list-budgets'] {
    const org = orgInReach(principal, orgId);
    if (!org.ok) return org;
    const after = cursor === undefined ? undefined : parseBudgetCursor(cursor);
    if (cursor !== undefined && after === undefined) return BAD_CURSOR;
    return ok(this.budgets.status({ orgId: org.value, after, limit: perPage }, nowMs));
  }

  #openControl(command: CommandOf<'open-control'>, nowMs: number): Outcome<'open-control'> {
    const speaker = this.#speakerOf(command, nowMs);
    if ('reply' in speaker) return speaker;
    const pending = this.#signals.pendingOf(speaker.entry.key).flatMap(({ slot, signal, sequence }) => {
      return this.ops.stateOf(slot) === 'completing' ? [] : [{ opId: this.ops.idOf(slot), signal, sequence }];
    });
    return unchanged(ok({ pending }));
  }

  #acknowledge(command: CommandOf<'ack-signal'>, nowMs: number): Outcome<'ack-signal'> {
    const speaker = this.#speakerOf(command, nowMs);
    if ('reply' in speaker) return speaker;
    const slot = this.#ownedBy(speaker.entry, command.opId);
    if (!slot.ok) return unchanged(slot);
    const { opId, sequence } = command;
    const signalled = { agent: speaker.entry.key, slot: slot.value, number: this.ops.numberOf(slot.value) };
    const known =
      this.ops.stateOf(slot.value) !== 'completing' && this.#signals.acknowledge(signalled, sequence, nowMs);
    return unchanged(
      known ? ok(undefined) : fail({ kind: 'not_found', what: `signal ${sequence} for operation ${opId}` }),
    );
  }

  /** The agent that such a call speaks for. Unlike a check, the call is refused with an error. */
  #speakerOf(command: OwnCall, nowMs: number): Speaker | Refusal {
    const identified = identify(this.agents, command.agent, command);
    switch (identified.kind) {
      case 'agent':
        if (command.credential !== undefined) this.agents.touch(identified.entry, nowMs);
        return identified;
      case 'org-out-of-reach':
        return unchanged(fail({ kind: 'org_forbidden', orgId: command.agent.orgId }));
      case 'no-credential':
      case 'unknown-credential':
        return unchanged(fail({ kind: 'unauthenticated', detail: REFUSAL[identified.kind] }));
      case 'impersonation': {
        const { owner } = identified;
        const action = METHOD_OF[command.type];
        const opId = 'opId' in command ? command.opId : undefined;
        return {
          reply: fail({ kind: 'impersonation' }),
          effects: effectsOfImpersonation({ owner, claimed: command.agent, action, opId, payload: { method: action } }),
        };
      }
      default:
        return assertNever(identified);
    }
  }

  #createHalt(command: CommandOf<'create-halt'>, nowMs: number): Outcome<'create-halt'> {
    const outcome = createHalt(this.#haltContext, command, nowMs);
    // Gateways that share approvals change each in a turn of its own.
    if (!outcome.reply.ok || outcome.undo === undefined || this.#state.turns !== undefined) return outcome;
    const halt = outcome.reply.value;
    const covered = [...coveredBy(this.approvalContext, halt, nowMs)];
    return withSteps(outcome, outcome.undo, haltApprovals(this.approvalContext, halt, covered, nowMs));
  }

  #releaseHalt(command: CommandOf<'release-halt'>, nowMs: number): Outcome<'release-halt'> {
    const outcome = releaseHalt(this.#haltContext, command, nowMs);
    return outcome.undo === undefined || this.#state.turns !== undefined
      ? outcome
      : withSteps(outcome, outcome.undo, thawApprovals(this.approvalContext, nowMs));
  }

  #ownApproval(command: CommandOf<'own-approval'>, nowMs: number): Outcome<'own-approval'> {
    const speaker = this.#speakerOf(command, nowMs);
    return 'reply' in speaker ? speaker : readOwnApproval(this.approvalContext, command, nowMs);
  }

  #cancelOwnApproval(command: CommandOf<'cancel-own-approval'>, nowMs: number): Outcome<'cancel-approval'> {
    const speaker = this.#speakerOf(command, nowMs);
    return 'reply' in speaker ? speaker : cancelOwnApproval(this.approvalContext, command, speaker.actor, nowMs);
  }

  /** The halt that keeps a paused operation from running on. */
  #haltOf(slot: OpSlot): Halt | undefined {
    return this.halts.coveringAny(this.ops.ownerOf(slot), (isCovered) => this.ops.isAnyAction(slot, isCovered));
  }

  /** Moves the operations of a halt, as far as the table has such a move. */
  #mover(nowMs: number): MoveOp {
    return (slot, trigger, { actor, payload }) => {
      const step = this.#step(slot, { trigger, end: 'halted', actor, payload }, nowMs);
      return step.ok ? step.value : undefined;
    };
  }

  #ownedBy(entry: AgentEntry, opId: OpId): Result<OpSlot, Fault> {
    // To another org's agent the operation does not exist.
    const slot = this.ops.find(opId, entry.identity.orgId);
    if (slot === undefined) return noOp(opId);
    return this.ops.ownerOf(slot) === entry ? ok(slot) : fail({ kind: 'not_owner', opId });
  }

  /** The operation of this id in the org that is asked for; without one, in any, as long as only one has such. */
  #visible({ principal, opId, orgId }: CommandOf<'get-op' | 'control-op'>): Result<OpSlot, Fault> {
    const org = orgInReach(principal, orgId);
    if (!org.ok) return org;
    if (org.value !== undefined) {
      const slot = this.ops.find(opId, org.value);
      return slot === undefined ? noOp(opId) : ok(slot);
    }
    const [only, ...others] = this.ops.findAll(opId);
    if (only === undefined) return noOp(opId);
    if (others.length === 0) return ok(only);
    const orgIds = [only, ...others].map((slot) => this.ops.ownerOf(slot).identity.orgId);
    return fail({ kind: 'ambiguous', opId, orgIds });
  }

  #move(slot: OpSlot, move: Move, nowMs: number): Moved {
    const step = this.#step(slot, move, nowMs);
    if (!step.ok) return unchanged(step);
    const reply = ok(this.#viewOf(slot));
    return step.value === undefined ? unchanged(reply) : { reply, ...step.value };
  }

  /** Undefined where it is in that state already. */
  #step(
    slot: OpSlot,
    { trigger, end, error, reason, actor, payload }: Move,
    nowMs: number,
  ): Result<{ readonly effects: readonly Effect[]; readonly undo: OpUndo } | undefined, Fault> {
    const { ops, budgets } = this;
    const opId = ops.idOf(slot);
    const from = ops.stateOf(slot);
    const about = error === undefined && reason === undefined ? undefined : ops.aboutOf(slot);
    const to = ops.advance(slot, trigger, nowMs, end);
    if (to === undefined) return fail({ kind: 'invalid_transition', opId, from, trigger });
    if (to === from) return ok(undefined);
    if (error !== undefined) ops.setError(slot, error);
    if (reason !== undefined) ops.setReason(slot, reason);
    const owner = ops.ownerOf(slot);
    // A completion sends no signal, so what the agent acknowledged is still the last one.
    const number = ops.numberOf(slot);
    const acknowledgedAtMs =
      trigger === 'complete' ? this.#signals.acknowledgedAtMs(slot, number) : this.#signals.expect(slot, number);
    const effects = this.#moved(slot, EVENT_OF[trigger], actor, payload);
    const heldMicroUsd = budgets.heldBy(slot);
    const heldUntilMs = budgets.heldUntilMs(slot);
    if (isFinished(to)) budgets.release(slot);
    if (trigger !== 'complete') effects.push({ kind: 'signal', agent: owner.key, opId, slot, number, signal: trigger });
    return ok({
      effects,
      undo: { kind: 'op', slot, number, from, about, heldMicroUsd, heldUntilMs, acknowledgedAtMs },
    });
  }

  /** A view is made only for those who watch: a halt moves a hundred thousand operations. */
  #moved(slot: OpSlot, eventType: AuditEvent, actor: string, payload?: AuditDraft['payload']): Effect[] {
    const draft = { eventType, lineage: this.ops.ownerOf(slot).identity, actor, opId: this.ops.idOf(slot), payload };
    const effects: Effect[] = [{ kind: 'audit', draft }];
    if (this.#state.isWatched) effects.push({ kind: 'op-changed', op: this.#viewOf(slot) });
    return effects;
  }

  #viewOf(slot: OpSlot): OpView {
    return viewOfOp(this.ops.recordOf(slot), this.#signals.acknowledgedAtMs(slot, this.ops.numberOf(slot)));
  }
}

const noOp = (opId: OpId) => fail({ kind: 'not_found', what: `operation ${opId}` } as const);
