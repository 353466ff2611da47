import type { AgentIdentity } from '../base/ids.ts';
import { firstPage, type Page } from '../base/page.ts';
import { assert, fail, ok, type Result } from '../base/result.ts';
import { CapsIndex } from './caps.ts';
import { type BudgetConfig, PERIODS, type Period, UNLIMITED } from './config.ts';
import {
  type BudgetAlert,
  type BudgetHandle,
  type BudgetOwner,
  Envelope,
  type Epoch,
  type Exceeded,
} from './envelope.ts';
import { type BudgetGrants, type BudgetShortage, nameOf } from './grants.ts';
import { BudgetHoldings } from './holdings.ts';
import type { PeriodWindow } from './period.ts';
import { type Held, type OpNumber, RESERVATION_TTL_MS, Reservations } from './reservations.ts';
import {
  type BudgetChange,
  type BudgetRow,
  type SpendRow,
  type Usage,
  type UsageRow,
  usageOf,
  usagesAmong,
} from './rows.ts';
import { RunningPeriods, type Turn } from './running.ts';
import {
  type BudgetFilter,
  type BudgetStatusRow,
  cursorOf,
  envelopesAfter,
  type PeriodStatus,
  statusRow,
} from './status.ts';
import { EnvelopeTree, type TreeLimits } from './tree.ts';
import { UnsavedSpend } from './unsaved-spend.ts';
import { UsageMemory, type UsageMemoryLimits, usageLimitsFor } from './usage.ts';

export type UsageOptions = {
  /** Makes a retry count once. */
  readonly usageId?: string | undefined;
  /** Anything counted under the usage id before this time was a different record. */
  readonly usageSinceMs?: number | undefined;
  /** The operation it was spent on; its reservation shrinks by as much. */
  readonly op?: OpNumber | undefined;
};

export type UsageOutcome = {
  /** The first cap that spend is over now, or undefined. The cost is counted either way. */
  readonly exceeded: Exceeded | undefined;
  readonly alerts: readonly BudgetAlert[];
  /** Counted before under the same usage id; `exceeded` is what was answered then. */
  readonly duplicate: boolean;
};

const MOST_PER_TURN = 1_000; // how much expiry and sweep do in one call
const DEFAULT_PAGE = 50;

const UNBOUNDED: TreeLimits = { ofOrg: Infinity, ofAll: Infinity, forRegistered: 0 };

const RESERVED: Result<void, Exceeded> = ok(undefined);
const COUNTED: UsageOutcome = { exceeded: undefined, alerts: [], duplicate: false };

/**
 * Caps on spend, per agent, team, org and over all, by day and by month (docs/spec.md, Budgets).
 *
 * - Amounts are whole micro-dollars. Caps are checked from the widest tier down, monthly before daily.
 * - What is allowed is reserved in the same call, so that checks in parallel cannot overrun a cap together.
 * - An agent without an org has no org tier. Its team is another one than the team of that name in any org.
 * - Where the clock was set, a period that it shows again has all that counted in it before, and what was spent since:
 *   see `RunningPeriods`.
 */
export class BudgetTracker {
  readonly #caps = new CapsIndex();
  readonly #periods: RunningPeriods;
  readonly #tree: EnvelopeTree;
  #overflows = 0;
  readonly #reservations = new Reservations(RESERVATION_TTL_MS);
  readonly #usages: UsageMemory;
  readonly #unsaved: UnsavedSpend;
  #grants: BudgetGrants | undefined;
  #holdings: BudgetHoldings | undefined;

  constructor(
    config: BudgetConfig | undefined,
    nowMs: number,
    usageLimits: UsageMemoryLimits = usageLimitsFor(Infinity),
    treeLimits: TreeLimits = UNBOUNDED,
  ) {
    this.#tree = new EnvelopeTree(this.#caps, treeLimits);
    this.#usages = new UsageMemory(usageLimits);
    this.#periods = new RunningPeriods(config?.timezone ?? UNLIMITED.timezone, nowMs, {
      onSetBack: (toMs) => {
        this.#reservations.setBack(toMs);
        this.#grants?.escrow.setBack(toMs);
      },
      onEnd: (period) => this.#grants?.end(period, this.#periods),
      onTurn: (turns) => this.#turn(turns),
    });
    this.#unsaved = new UnsavedSpend(this.#tree, this.#periods);
    this.reconfigure(config, nowMs);
  }

  /** From now on only what the ledger of a cluster has granted is spent. Call it before the first use. */
  useLedger(grants: BudgetGrants, config: BudgetConfig | undefined, nowMs: number): void {
    this.#grants = grants;
    this.#holdings = new BudgetHoldings(grants, this.#tree, this.#periods, (atMs) => this.#advance(atMs));
    this.reconfigure(config, nowMs);
  }

  /** The accounts of that ledger. */
  get holdings(): BudgetHoldings {
    assert(this.#holdings !== undefined, 'there is a ledger');
    return this.#holdings;
  }

  /** Whether more is spent than the ledger has granted, of any of the agent's accounts. */
  exceedsGrants(agent: AgentIdentity | BudgetHandle): boolean {
    return this.#grants !== undefined && this.#grants.shortagesOf(this.#resolve(agent), 0, 0).length > 0;
  }

  /** Called whenever an operation holds another amount. */
  set onHeld(onHeld: ((op: OpNumber, microUsd: number) => void) | undefined) {
    this.#reservations.onHeld = onHeld;
  }

  /** Whether there is a ledger, so that other gateways spend of the same caps. */
  get isShared(): boolean {
    return this.#grants !== undefined;
  }

  /** Returns the agent's shortages for this cost; for `reserve` that has just failed because of them. */
  shortagesOf(agent: AgentIdentity | BudgetHandle, op: OpNumber, costMicroUsd: number): readonly BudgetShortage[] {
    const envelope = this.#resolve(agent);
    return this.#grants?.shortagesOf(envelope, costMicroUsd, this.#reservations.heldBy(op, envelope)) ?? [];
  }

  /** Puts new caps in force. Spend and the current day and month stay as they are. Undefined lifts all caps. */
  reconfigure(config: BudgetConfig | undefined, nowMs: number): void {
    this.#advance(nowMs);
    const { lowered, orgs } = this.#caps.reconfigure(config ?? UNLIMITED, this.#grants !== undefined);
    this.#tree.recap(orgs);
    this.#grants?.escrow.giveBack(
      ({ envelope }) => lowered.includes(envelope.tier) || orgs.has(envelope.path[0] ?? ''),
    );
    if (config !== undefined) this.#periods.timezone = config.timezone;
  }

  /**
   * A handle for the agent. Its place in the tree is kept until `forget`. Undefined where there is no room for it: then
   * its money counts in the widest of its tiers, which are given by its names each time.
   */
  handleOf(agent: AgentIdentity, isRegistered: boolean): BudgetHandle | undefined {
    const envelope = this.#envelopeOf(agent, isRegistered);
    if (envelope.tier !== 'agent') return undefined;
    envelope.pinned = true;
    return envelope;
  }

  /** Usage records that were counted in wider tiers only, because there were too many agents to count each. */
  get overflows(): number {
    return this.#overflows;
  }

  /** How many orgs, teams and agents money is counted for. */
  get owners(): number {
    return this.#tree.size;
  }

  /** Gives the handle back. What the agent has spent still counts. */
  forget(handle: BudgetHandle): void {
    handle.pinned = false;
  }

  /**
   * Holds the cost for the operation until it is recorded, released or 10 minutes old. A further call for the same
   * operation may hold more, and never less: it is a retry, or another step of what is about to spend what was held
   * before. A refused one leaves everything as it was. A cost of 0 holds nothing, and is refused only where spend alone
   * is over a cap.
   */
  reserve(
    agent: AgentIdentity | BudgetHandle,
    op: OpNumber,
    costMicroUsd: number,
    nowMs: number,
  ): Result<void, Exceeded> {
    assertCost(costMicroUsd);
    this.#advance(nowMs);
    // Most checks cost nothing, and where there are no caps either, nobody's money has to be looked at.
    if (costMicroUsd === 0 && !this.#caps.hasAny && this.#grants === undefined) return RESERVED;
    const envelope = this.#resolve(agent);
    const held = this.#reservations.heldBy(op, envelope);
    const exceeded = envelope.firstExceeded(costMicroUsd, held, this.#epoch);
    if (exceeded !== undefined || this.#grants !== undefined) {
      this.#grants?.touch(envelope, false, this.#window, this.#timeMs);
      const refused = this.#judged(envelope, costMicroUsd, held, exceeded);
      if (refused !== undefined) return fail(refused);
    }
    if (costMicroUsd > 0) this.#reservations.take(op, envelope, Math.max(costMicroUsd, held), this.#timeMs);
    return RESERVED;
  }

  /**
   * Predicts the answer of `reserve`, for a new operation or the one given. Holds nothing, and makes no place for an
   * unknown agent.
   */
  wouldExceed(
    agent: AgentIdentity | BudgetHandle,
    costMicroUsd: number,
    nowMs: number,
    op?: OpNumber,
  ): Exceeded | undefined {
    assertCost(costMicroUsd);
    this.#advance(nowMs);
    const envelope =
      agent instanceof Envelope ? this.#resolve(agent) : this.#tree.peekAt(agent.orgId, agent.teamId, agent.agentId);
    const held = op === undefined ? 0 : this.#reservations.heldBy(op, envelope);
    const exceeded = this.#judged(
      envelope,
      costMicroUsd,
      held,
      envelope.firstExceeded(costMicroUsd, held, this.#epoch),
    );
    return exceeded?.doubt === 'short' ? undefined : exceeded; // most likely there is room
  }

  /** The ledger of a cluster decides if this gateway alone is below every cap. */
  #judged(
    envelope: Envelope,
    costMicroUsd: number,
    held: number,
    exceeded: Exceeded | undefined,
  ): Exceeded | undefined {
    if (this.#grants === undefined || (exceeded !== undefined && exceeded.doubt === undefined)) return exceeded;
    if (costMicroUsd === 0) return this.#grants.overspent(envelope, this.#periods) ?? exceeded;
    if (exceeded === undefined) return undefined;
    const shortages = this.#grants.shortagesOf(envelope, costMicroUsd, held);
    return this.#grants.exhaustedBy(shortages, this.#periods, this.#timeMs) ?? exceeded;
  }

  /** Returns the operation's reservation. */
  heldBy(op: OpNumber): number {
    return this.#reservations.amountOf(op);
  }

  /** When that reservation expires; 0: there is none. */
  heldUntilMs(op: OpNumber): number {
    return this.#reservations.heldUntilMs(op);
  }

  /**
   * Restores the operation's earlier reservation with its earlier expiry, even if others have reserved that money
   * since.
   */
  holdAgain(agent: AgentIdentity | BudgetHandle, op: OpNumber, held: Held, nowMs: number): void {
    this.#advance(nowMs);
    if (held.microUsd === this.heldBy(op) && held.untilMs === this.heldUntilMs(op)) return;
    const untilMs = Math.min(held.untilMs, this.#timeMs + RESERVATION_TTL_MS);
    if (held.microUsd > 0 && untilMs > this.#timeMs)
      this.#reservations.putBack(op, this.#resolve(agent), { ...held, untilMs });
    else this.#reservations.release(op);
  }

  /** Gives back what the operation holds, because it has ended. True when it held anything. */
  release(op: OpNumber): boolean {
    return this.#reservations.release(op);
  }

  /**
   * A usage record is a fact: it counts in every tier even where it exceeds a cap. With `op` it takes the place of
   * as much of that operation's reservation. The rest is held for what the operation may still spend.
   */
  record(
    agent: AgentIdentity | BudgetHandle,
    costMicroUsd: number,
    { usageId, usageSinceMs = 0, op }: UsageOptions,
    nowMs: number,
  ): UsageOutcome {
    assertCost(costMicroUsd);
    this.#advance(nowMs);
    const envelope = this.#resolve(agent);
    if (envelope.tier !== 'agent') this.#overflows += 1;
    const usage =
      usageId === undefined ? undefined : usageOf(agent instanceof Envelope ? agent.owner() : agent, usageId);
    const known = usage === undefined ? undefined : this.#usages.recall(usage, this.#timeMs);
    if (known !== undefined && known.recordedAtMs >= usageSinceMs)
      return { exceeded: known.exceeded ?? undefined, alerts: [], duplicate: true };
    const held = op === undefined ? 0 : this.#reservations.heldBy(op, envelope);
    if (op !== undefined && held > 0) this.#reservations.lower(op, Math.max(0, held - costMicroUsd));
    const alerts = this.#add(envelope, costMicroUsd);
    const exceeded =
      this.#grants === undefined
        ? envelope.firstExceeded(0, 0, this.#epoch)
        : this.#grants.overspent(envelope, this.#periods);
    if (usage !== undefined) this.#usages.remember(rowOf(usage, this.#timeMs, exceeded));
    return exceeded === undefined && alerts.length === 0 ? COUNTED : { exceeded, alerts, duplicate: false };
  }

  /** Gives back expired reservations, a limited number at a time, as every other call does too. Returns how many. */
  expire(nowMs: number): number {
    const before = this.#reservations.size;
    this.#advance(nowMs);
    return before - this.#reservations.size;
  }

  /** Forgets expired usage ids, and owners without spend and handle, a limited number at a time. Returns how many. */
  sweep(nowMs: number): number {
    this.#advance(nowMs);
    const removed = this.#tree.sweep(MOST_PER_TURN, this.#epoch, this.#periods.isInDoubt);
    for (const envelope of removed) {
      this.#unsaved.drop(envelope);
      this.#grants?.forget(envelope);
    }
    return removed.length + this.#usages.sweep(this.#timeMs, MOST_PER_TURN);
  }

  /** True when owners appear faster than sweeps can visit them: the next sweep should start at once. */
  get isSweepDue(): boolean {
    return this.#tree.isSweepDue;
  }

  /** When the current period ends, and its spend counts no longer. */
  resetsAtMs(period: Period): number {
    return period === 'monthly' ? this.#window.monthlyResetMs : this.#window.dailyResetMs;
  }

  /** How many operations hold money, and how much they hold together. */
  get reservations(): { readonly count: number; readonly microUsd: number } {
    return { count: this.#reservations.size, microUsd: this.#tree.root.reservedMicroUsd };
  }

  /** Global first, then orgs, teams and agents; a page at a time. */
  status(filter: BudgetFilter, nowMs: number): Page<BudgetStatusRow> {
    this.#advance(nowMs);
    const { items, next } = firstPage(envelopesAfter(this.#tree.root, filter), filter.limit ?? DEFAULT_PAGE, cursorOf);
    return { items: items.map((envelope) => statusRow(envelope, this.#window, this.#epoch, this.#grants)), next };
  }

  /** Returns the ledger's names of the running periods. */
  periodNames(nowMs: number): Readonly<Record<Period, string>> {
    this.#advance(nowMs);
    return { monthly: nameOf('monthly', this.#window), daily: nameOf('daily', this.#window) };
  }

  /** A line about an account of the ledger. What is reserved of it elsewhere is not known here. */
  sharedStatus(owner: BudgetOwner, spentMicroUsd: Readonly<Record<Period, number>>): BudgetStatusRow {
    const names = [owner.orgId, owner.teamId, owner.agentId].filter((name) => name !== null);
    const row = statusRow(this.#tree.peekAt(...names), this.#window, this.#epoch);
    const spentIn = (period: Period): PeriodStatus => ({ ...row[period], spentMicroUsd: spentMicroUsd[period] });
    return { ...row, ...owner, monthly: spentIn('monthly'), daily: spentIn('daily') };
  }

  /**
   * Returns the changes that a store must make to catch up, since the last call. To be written as one transaction: a
   * usage id must not be stored without its spend. Reservations are not stored, because the operations they belong to
   * end with the process.
   */
  drainChanges(): BudgetChange[] {
    return this.#unsaved.drain().concat(this.#usages.drainChanges());
  }

  /**
   * For changes that the store could not write: their rows come again with the next changes, with the values they have
   * then.
   */
  requeueChanges(changes: readonly BudgetChange[]): void {
    for (const { row } of changes) {
      if (row === undefined) continue; // the next restore drops a row that is no longer needed
      if (row.kind === 'usage') this.#usages.requeue(row);
      else this.#unsaved.requeue(row);
    }
  }

  /**
   * Takes back what `drainChanges` gave to the store, before the first use. Spend of periods that have ended is
   * dropped.
   */
  restore(rows: Iterable<BudgetRow>, nowMs: number): void {
    assert(this.#tree.isEmpty, 'a tracker is restored before it is used');
    this.#advance(nowMs);
    const spends: SpendRow[] = [];
    this.#usages.restore(usagesAmong(rows, spends), this.#timeMs);
    for (const { daily } of spends) this.#periods.catchUp(daily.name);
    for (const row of spends) {
      const envelope = this.#unsaved.restore(row);
      // The ledger knows nothing of it yet.
      if (envelope !== undefined) this.#grants?.touch(envelope, true, this.#window, this.#timeMs);
    }
  }

  #advance(nowMs: number): void {
    this.#periods.advance(nowMs);
    this.#reservations.expire(this.#timeMs, MOST_PER_TURN);
  }

  get #timeMs(): number {
    return this.#periods.timeMs;
  }

  get #window(): PeriodWindow {
    return this.#periods.window;
  }

  get #epoch(): Epoch {
    return this.#periods.epoch;
  }

  #turn(turns: readonly Turn[]): void {
    for (const envelope of this.#tree.all()) {
      for (const { period, isKnown } of turns) envelope.turn(period, isKnown, this.#epoch);
      if (PERIODS.some((period) => envelope.spend(period, this.#epoch).spentMicroUsd > 0)) this.#unsaved.mark(envelope);
    }
  }

  #add(agent: Envelope, costMicroUsd: number): readonly BudgetAlert[] {
    let mayAlert = false;
    for (let each: Envelope | undefined = agent; each !== undefined; each = each.parent) {
      if (each.add(costMicroUsd, this.#epoch)) mayAlert = true;
      this.#unsaved.mark(each);
    }
    this.#grants?.touch(agent, true, this.#window, this.#timeMs);
    // In a cluster, the ledger knows the spending of all gateways.
    return mayAlert && this.#grants === undefined ? alertsOf(agent, this.#epoch) : COUNTED.alerts;
  }

  #resolve(agent: AgentIdentity | BudgetHandle): Envelope {
    if (!(agent instanceof Envelope)) return this.#envelopeOf(agent, false);
    assert(!agent.removed, 'a handle is not used after it was forgotten');
    return agent;
  }

  #envelopeOf({ orgId, teamId, agentId }: AgentIdentity, isRegistered: boolean): Envelope {
    return this.#tree.at([orgId, teamId, agentId], isRegistered);
  }
}

function assertCost(costMicroUsd: number): void {
  assert(Number.isSafeInteger(costMicroUsd) && costMicroUsd >= 0, 'a cost is a whole number of micro-dollars');
}

/**
 * Field by field: there may be very many, and of a spread each would have a hidden class of its own (docs/style.md, 3).
 */
const rowOf = (
  { orgId, teamId, agentId, usageId }: Usage,
  recordedAtMs: number,
  exceeded: Exceeded | undefined,
): UsageRow => ({ kind: 'usage', orgId, teamId, agentId, usageId, recordedAtMs, exceeded: exceeded ?? null });

const alertsOf = (envelope: Envelope, epoch: Epoch): BudgetAlert[] => [
  ...(envelope.parent === undefined ? [] : alertsOf(envelope.parent, epoch)),
  ...envelope.takeAlerts(epoch),
];
