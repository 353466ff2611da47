import { type AgentRegistration, AgentRegistry } from './agents/agents.ts';
import { type AgentLimits, answerTopology, deregisterAgent, listAgents, registerAgent } from './agents/commands.ts';
import { identify } from './agents/identify.ts';
import { ownedBy, speakerOf } from './agents/own-calls.ts';
import { refuseAction } from './agents/refused-action.ts';
import type { Approval } from './approvals/approval.ts';
import { ApprovalRegistry } from './approvals/approvals.ts';
import {
  applyToApprovals,
  cancelOwnApproval,
  coveredBy,
  haltApprovals,
  readOwnApproval,
  thawApprovals,
} from './approvals/commands.ts';
import { approvalContextOf } from './approvals/context.ts';
import { type ApprovalContext, withSteps } from './approvals/steps.ts';
import type { AgentKey, OpId } from './base/ids.ts';
import { BAD_CURSOR } from './base/page.ts';
import { fail, ok } from './base/result.ts';
import type { BudgetTracker } from './budget/budget.ts';
import { recordUsage } from './budget/record-usage.ts';
import { parseBudgetCursor } from './budget/status.ts';
import { Checker, type CheckState } from './check/check.ts';
import type { Command, CommandOf, CommandType, Replies } from './commands.ts';
import type { Effect } from './effects.ts';
import {
  adoptHalt,
  createHalt,
  enforceHalt,
  type HaltContext,
  listHalts,
  releaseHalt,
  resumeHalted,
} from './halts/commands.ts';
import type { Halt } from './halts/halt.ts';
import { HaltRegistry } from './halts/halts.ts';
import { orgInReach } from './identity/access.ts';
import type { CompiledLimit } from './limits/compiled.ts';
import { type LimitOptions, LimitTracker } from './limits/limits.ts';
import { completeOp, controlOp, getOp, listOps, type OpContext, registerOp } from './ops/commands.ts';
import { OpMoves } from './ops/moves.ts';
import type { SignalMessage } from './ops/op-view.ts';
import { OpsRegistry } from './ops/ops.ts';
import { SignalBoxes } from './ops/signals.ts';
import { type Outcome, unchanged } from './outcome.ts';
import { type Begun, rollBack, terminateBegun, type Undo } from './rollback.ts';

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
  readonly #moves: OpMoves;
  readonly #opContext: OpContext;
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
    this.#moves = new OpMoves({
      ops: this.ops,
      budgets: this.budgets,
      signals: this.#signals,
      isWatched: () => this.#state.isWatched,
    });
    this.#inForce = given.policies;
    this.#checker = new Checker(this.#state);
    this.#agentLimits = { maxAgents, maxOrgAgents };
    this.#sweepTtlMs = sweepTtlMs;
    this.approvalContext = approvalContextOf(
      this,
      () => this.#state.turns,
      (slot, move, nowMs) => this.#moves.move(slot, { trigger: 'terminate', ...move }, nowMs),
    );
    this.#haltContext = { agents: this.agents, halts: this.halts, ops: this.ops };
    this.#opContext = {
      ...this.#haltContext,
      approvals: this.approvalContext,
      moves: this.#moves,
      state: this.#state,
    };
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
        return unchanged(
          ok({
            isIts:
              identify(this.agents, command.agent, { credential: command.credential, principal: undefined }).kind ===
              'agent',
          }),
        );
      case 'register-op':
        return registerOp(this.#opContext, command, nowMs);
      case 'control-op':
        return controlOp(this.#opContext, command, nowMs);
      case 'complete-op':
        return completeOp(this.#opContext, command, nowMs);
      case 'get-op':
        return unchanged(getOp(this.#opContext, command));
      case 'list-ops':
        return unchanged(listOps(this.#opContext, command));
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
        return enforceHalt(this.#haltContext, command, this.#moves.haltedAt(nowMs));
      case 'resume-halted':
        return resumeHalted(this.#haltContext, command, this.#moves.haltedAt(nowMs));
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

  #recordUsage(command: CommandOf<'record-usage'>, nowMs: number): Outcome<'record-usage'> {
    const speaker = speakerOf(this.agents, command, nowMs);
    if ('reply' in speaker) return speaker;
    // The money was spent, even if the operation is gone, never existed or belongs to another org.
    const owned = command.opId === undefined ? undefined : ownedBy(this.ops, speaker.entry, command.opId);
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
    const speaker = speakerOf(this.agents, command, nowMs);
    if ('reply' in speaker) return speaker;
    const pending = this.#signals.pendingOf(speaker.entry.key).flatMap(({ slot, signal, sequence }) => {
      return this.ops.stateOf(slot) === 'completing' ? [] : [{ opId: this.ops.idOf(slot), signal, sequence }];
    });
    return unchanged(ok({ pending }));
  }

  #acknowledge(command: CommandOf<'ack-signal'>, nowMs: number): Outcome<'ack-signal'> {
    const speaker = speakerOf(this.agents, command, nowMs);
    if ('reply' in speaker) return speaker;
    const slot = ownedBy(this.ops, speaker.entry, command.opId);
    if (!slot.ok) return unchanged(slot);
    const { opId, sequence } = command;
    const signalled = { agent: speaker.entry.key, slot: slot.value, number: this.ops.numberOf(slot.value) };
    const known =
      this.ops.stateOf(slot.value) !== 'completing' && this.#signals.acknowledge(signalled, sequence, nowMs);
    return unchanged(
      known ? ok(undefined) : fail({ kind: 'not_found', what: `signal ${sequence} for operation ${opId}` }),
    );
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
    const speaker = speakerOf(this.agents, command, nowMs);
    return 'reply' in speaker ? speaker : readOwnApproval(this.approvalContext, command, nowMs);
  }

  #cancelOwnApproval(command: CommandOf<'cancel-own-approval'>, nowMs: number): Outcome<'cancel-approval'> {
    const speaker = speakerOf(this.agents, command, nowMs);
    return 'reply' in speaker ? speaker : cancelOwnApproval(this.approvalContext, command, speaker.actor, nowMs);
  }
}
