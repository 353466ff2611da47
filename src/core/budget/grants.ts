import { PERIODS, type Period } from './config.ts';
import type { AlertPercent, BudgetAlert, BudgetOwner, Envelope, Epoch, Exceeded } from './envelope.ts';
import type { PeriodWindow } from './period.ts';
import { keyOfOwner } from './rows.ts';

/** An account of the ledger: an owner in one named period, such as `org/acme` in `d:2026-11-25`. */
export type AccountName = { readonly owner: string; readonly period: string };

/** A gateway's report about an account, in whole micro-dollars. Absolute and cumulative, so that repeats do no harm. */
export type AccountRow = AccountName & {
  readonly fromMs: number;
  readonly toMs: number;
  /** Infinity: there is none, and spend is only reported. */
  readonly capMicroUsd: number;
  /** The part of the grant that this run keeps, spent or not. It has already lowered its own grant to that. */
  readonly keptMicroUsd: number;
  /** Spent in this run. Never falls. */
  readonly spentMicroUsd: number;
  /** Wanted beyond what is kept; granted whole or not at all. */
  readonly neededMicroUsd: number;
  readonly wantedMicroUsd: number;
};

/** The ledger's answer about an account. */
export type Grant = AccountName & {
  readonly grantedMicroUsd: number;
  readonly spentByAllMicroUsd: number;
  readonly heldByAllMicroUsd: number;
  /** This exchange has made spend reach that part of the cap. */
  readonly alertPercent: AlertPercent | undefined;
};

/** An amount that a waiting check lacks in one account. */
export type Shortage = { readonly envelope: Envelope; readonly period: Period; readonly lacksMicroUsd: number };

type Account = {
  readonly envelope: Envelope;
  readonly period: Period;
  /** The period of the following fields. */
  name: string;
  reportedMicroUsd: number;
  /** Spent or reserved at that time. */
  heldMicroUsd: number;
  exchangedAtMs: number;
  /** When a check last used it. */
  usedAtMs: number;
  neededMicroUsd: number;
  /** The sum that all waiting checks lack. */
  demandMicroUsd: number;
  /** When the ledger has last said that there is no room. */
  refusedAtMs: number;
  /** Asked for by another gateway. */
  isRecalled: boolean;
  spentByOthersMicroUsd: number;
  exhausted: { readonly fromMicroUsd: number; readonly untilMs: number; readonly isUnconfirmed: boolean } | undefined;
};

const IDLE_AFTER_MS = 10_000;
const REPORT_AFTER_MS = 10_000;
const EXHAUSTED_FOR_MS = 1_000;
const RECALLED_AGAIN_MS = 1_000;
const LEAST_WANTED_PARTS = 4;

/**
 * The grants of a cluster's ledger to this gateway. A grant is lowered here before the ledger is told, and raised after
 * it has said so: the grant that this gateway counts is never more than the sum that the ledger has put aside for it.
 */
export class BudgetGrants {
  readonly #accounts = new Map<Envelope, Partial<Record<Period, Account>>>();
  readonly #byName = new Map<string, Account>();
  /** Exchanged at once: a check waits, or another gateway does. */
  readonly #urgent = new Set<Account>();
  /** To be said again, behind the urgent ones. */
  readonly #unstated = new Set<Account>();
  /** Accounts that waiting checks need. */
  readonly #needed = new Set<Account>();
  readonly #sliceMs: number;

  /** `sliceMs`: for how long a grant is to last. */
  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs;
  }

  /** Every account that lacks something for this cost, the widest first. */
  shortagesOf(agent: Envelope, costMicroUsd: number, freedMicroUsd: number): readonly Shortage[] {
    const above = agent.parent === undefined ? [] : this.shortagesOf(agent.parent, costMicroUsd, freedMicroUsd);
    const added = costMicroUsd === 0 ? 0 : agent.reservedMicroUsd - freedMicroUsd + costMicroUsd;
    return [
      ...above,
      ...PERIODS.flatMap((period) => {
        const lacksMicroUsd = agent.lacks(period, added);
        return lacksMicroUsd === 0 ? [] : [{ envelope: agent, period, lacksMicroUsd }];
      }),
    ];
  }

  /** Returns the denial of a check with shortages if the ledger has just answered that there is no room for as much. */
  exhaustedBy(shortages: readonly Shortage[], window: PeriodWindow, epoch: Epoch, nowMs: number): Exceeded | undefined {
    let inDoubt: Exceeded | undefined;
    for (const { envelope, period, lacksMicroUsd } of shortages) {
      const exhausted = this.#accounts.get(envelope)?.[period]?.exhausted;
      if (exhausted === undefined || nowMs >= exhausted.untilMs || lacksMicroUsd < exhausted.fromMicroUsd) continue;
      const exceeded = this.#exceededOf(envelope, period, window, epoch);
      if (!exhausted.isUnconfirmed) return exceeded;
      inDoubt ??= { ...exceeded, doubt: 'unconfirmed' };
    }
    return inDoubt;
  }

  #exceededOf(envelope: Envelope, period: Period, window: PeriodWindow, epoch: Epoch): Exceeded {
    return {
      tier: envelope.tier,
      period,
      spentMicroUsd: envelope.spend(period, epoch).spentMicroUsd + this.spentByOthers(envelope, period, window),
      reservedMicroUsd: envelope.reservedMicroUsd,
      limitMicroUsd: envelope.limitMicroUsd(period) ?? Number.MAX_SAFE_INTEGER,
    };
  }

  /** Call it before `need` is called for each check that still waits: a need ends with its check. */
  clearNeeds(): void {
    for (const account of this.#needed) {
      account.neededMicroUsd = 0;
      account.demandMicroUsd = 0;
    }
    this.#needed.clear();
  }

  /** Notes what a waiting check needs: it is asked for with the next exchange. */
  need(shortages: readonly Shortage[], window: PeriodWindow, nowMs: number): void {
    for (const { envelope, period, lacksMicroUsd } of shortages) {
      const account = this.#accountOf(envelope, period, window);
      if (account.neededMicroUsd === 0) account.neededMicroUsd = lacksMicroUsd; // that of the oldest check
      account.demandMicroUsd += lacksMicroUsd;
      account.usedAtMs = nowMs;
      this.#needed.add(account);
      this.#urgent.add(account);
    }
  }

  /** A check got these and lacks others: it holds up nobody who could use them. */
  giveBackNeeds(shortages: readonly Shortage[], window: PeriodWindow, epoch: Epoch): void {
    for (const { envelope, period, lacksMicroUsd } of shortages) {
      const account = this.#accountOf(envelope, period, window);
      const granted = envelope.grantedMicroUsd(period);
      envelope.setGranted(period, Math.min(granted, Math.max(heldBy(account, epoch), granted - lacksMicroUsd)));
      this.#urgent.add(account);
    }
  }

  /**
   * A check has waited in vain. For amounts from its own upwards, checks are denied at once for a second; where the
   * ledger is only slow, no other check is.
   */
  exhaust(shortages: readonly Shortage[], window: PeriodWindow, nowMs: number, isUnreachable: boolean): void {
    for (const { envelope, period, lacksMicroUsd } of shortages) {
      const account = this.#accountOf(envelope, period, window);
      const isRefused = nowMs - account.refusedAtMs <= EXHAUSTED_FOR_MS;
      const forMs = isRefused || isUnreachable ? EXHAUSTED_FOR_MS : 1;
      const isUnconfirmed = isUnreachable || !isRefused;
      account.exhausted = { fromMicroUsd: lacksMicroUsd, untilMs: nowMs + forMs, isUnconfirmed };
      account.neededMicroUsd = 0;
      account.demandMicroUsd = 0;
    }
  }

  /** Spend or a reservation has touched it. What has no cap is reported once something is spent. */
  touch(agent: Envelope, isSpend: boolean, window: PeriodWindow, nowMs: number): void {
    for (let each: Envelope | undefined = agent; each !== undefined; each = each.parent) {
      if (each.isPlaceholder) continue;
      for (const period of PERIODS)
        if (isSpend || each.limitMicroUsd(period) !== undefined) this.#accountOf(each, period, window).usedAtMs = nowMs;
    }
  }

  /**
   * Another gateway has nothing left of these: what is not in use here is given back with the next exchange. Where
   * nothing is, the ledger may think otherwise: it is told again, once a second at most.
   */
  recall(names: readonly AccountName[], epoch: Epoch, nowMs: number): boolean {
    let isAny = false;
    for (const { owner, period } of names) {
      const account = this.#byName.get(`${owner} ${period}`);
      if (account === undefined) continue;
      const isEmpty = heldBy(account, epoch) >= account.envelope.grantedMicroUsd(account.period);
      if (isEmpty && nowMs - account.exchangedAtMs < RECALLED_AGAIN_MS) continue;
      account.isRecalled = true;
      this.#urgent.add(account);
      isAny = true;
    }
    return isAny;
  }

  /** Caps of these may be lower now: what is not in use of them is given back with the next exchange. */
  giveBack(isLowered: (envelope: Envelope) => boolean): void {
    for (const account of this.#byName.values()) {
      if (!isLowered(account.envelope)) continue;
      account.isRecalled = true;
      this.#urgent.add(account);
    }
  }

  /** Reports unreported spending with the next exchange, for so many accounts at most. */
  report(most: number, window: PeriodWindow, epoch: Epoch): void {
    for (const account of [...this.#byName.values()]) {
      if (this.#urgent.size >= most) return;
      this.#roll(account, window, epoch);
      if (spentOf(account, epoch) !== account.reportedMicroUsd) this.#urgent.add(account);
    }
  }

  /** The same of these accounts, and of the wider ones. */
  reportOf(agent: Envelope, window: PeriodWindow): void {
    for (let each: Envelope | undefined = agent; each !== undefined; each = each.parent)
      if (!each.isPlaceholder) for (const period of PERIODS) this.#urgent.add(this.#accountOf(each, period, window));
  }

  /** Another server may have forgotten what its predecessor was told: the next exchanges say all of it again. */
  restate(): void {
    for (const account of this.#byName.values()) this.#unstated.add(account);
  }

  /** An exchange of these had no answer: the ledger may have granted what is not known here. */
  restateRows(names: readonly AccountName[]): void {
    for (const { owner, period } of names) {
      const account = this.#byName.get(`${owner} ${period}`);
      if (account !== undefined) this.#unstated.add(account);
    }
  }

  get isUnstated(): boolean {
    return this.#unstated.size > 0;
  }

  /** Whether a check waits for an exchange, or another gateway does. */
  get isUrgent(): boolean {
    return this.#urgent.size > 0 || this.#unstated.size > 0;
  }

  /** The accounts to exchange now, at most so many: the urgent ones, and `all` that are due otherwise. */
  due(most: number, all: boolean, window: PeriodWindow, epoch: Epoch, nowMs: number): readonly AccountRow[] {
    const accounts = new Set([...this.#urgent].slice(0, most));
    for (const account of accounts) this.#urgent.delete(account);
    for (const account of this.#unstated) {
      if (accounts.size >= most) break;
      this.#unstated.delete(account);
      if (!account.envelope.removed) accounts.add(account);
    }
    if (all)
      for (const account of [...this.#byName.values()]) {
        if (accounts.size === most) break;
        this.#roll(account, window, epoch);
        if (account.neededMicroUsd > 0 || this.#isDue(account, epoch, nowMs)) accounts.add(account);
      }
    return Array.from(accounts, (account) => {
      this.#roll(account, window, epoch);
      this.#moveBehind(account);
      return this.#rowOf(account, window, epoch, nowMs);
    });
  }

  /** If more are due than fit, those that were not exchanged for the longest time come first. */
  #moveBehind(account: Account): void {
    const key = keyOf(account);
    if (this.#byName.delete(key)) this.#byName.set(key, account);
  }

  /**
   * Every account, with nothing kept beyond what is spent and what running operations may spend: this run ends, and
   * they go on. The ledger frees the latter once their reservations would have expired.
   */
  closing(window: PeriodWindow, epoch: Epoch): readonly AccountRow[] {
    return [...this.#byName.values()].map((account) => {
      this.#roll(account, window, epoch);
      const granted = account.envelope.grantedMicroUsd(account.period);
      const keptMicroUsd = Math.min(heldBy(account, epoch), Math.max(granted, spentOf(account, epoch)));
      account.envelope.setGranted(account.period, Math.min(keptMicroUsd, granted));
      return {
        ...this.#rowOf(account, window, epoch, Infinity),
        keptMicroUsd,
        neededMicroUsd: 0,
        wantedMicroUsd: 0,
      };
    });
  }

  /** Gives up what is not in use, without the ledger: this gateway may have been replaced without knowing. */
  freeze(window: PeriodWindow, epoch: Epoch): void {
    for (const account of [...this.#byName.values()]) {
      this.#roll(account, window, epoch);
      const { envelope, period } = account;
      envelope.setGranted(period, Math.min(heldBy(account, epoch), envelope.grantedMicroUsd(period)));
      this.#unstated.add(account);
    }
  }

  /** The clock was set back: nothing has happened later than now. */
  setBack(nowMs: number): void {
    for (const account of this.#byName.values()) {
      account.exchangedAtMs = Math.min(account.exchangedAtMs, nowMs);
      account.usedAtMs = Math.min(account.usedAtMs, nowMs);
      account.refusedAtMs = Math.min(account.refusedAtMs, nowMs);
      account.exhausted = undefined;
    }
  }

  /** Takes the answer to the latest exchange. Returns the alerts that it raises. */
  grant(
    rows: readonly AccountRow[],
    grants: readonly Grant[],
    window: PeriodWindow,
    epoch: Epoch,
    nowMs: number,
  ): BudgetAlert[] {
    const sent = new Map(rows.map((row) => [`${row.owner} ${row.period}`, row]));
    const alerts: BudgetAlert[] = [];
    for (const grant of grants) {
      const name = `${grant.owner} ${grant.period}`;
      const account = this.#byName.get(name);
      const row = sent.get(name);
      if (account === undefined || row === undefined || account.envelope.removed) continue;
      this.#roll(account, window, epoch);
      if (account.name !== grant.period) continue; // midnight has passed meanwhile
      if (row.capMicroUsd !== Infinity) account.envelope.setGranted(account.period, grant.grantedMicroUsd);
      account.reportedMicroUsd = row.spentMicroUsd;
      account.heldMicroUsd = heldBy(account, epoch);
      account.spentByOthersMicroUsd = grant.spentByAllMicroUsd - row.spentMicroUsd;
      account.exchangedAtMs = nowMs;
      const needed = row.neededMicroUsd;
      if (needed > 0 && grant.grantedMicroUsd >= Math.max(row.keptMicroUsd, row.spentMicroUsd) + needed) {
        account.neededMicroUsd = 0;
        account.exhausted = undefined;
      } else if (needed > row.capMicroUsd - grant.spentByAllMicroUsd - grant.heldByAllMicroUsd)
        account.refusedAtMs = nowMs; // else there is room, and the ledger grants nothing to anybody at the moment
      if (grant.alertPercent === undefined) continue;
      alerts.push({
        ...account.envelope.owner(),
        period: account.period,
        percent: grant.alertPercent,
        spentMicroUsd: grant.spentByAllMicroUsd,
        limitMicroUsd: row.capMicroUsd,
      });
    }
    return alerts;
  }

  /** Returns the spending of other gateways, as of the latest exchange. */
  spentByOthers(envelope: Envelope, period: Period, window: PeriodWindow): number {
    const account = this.#accounts.get(envelope)?.[period];
    return account?.name === nameOf(period, window) ? account.spentByOthersMicroUsd : 0;
  }

  /** The first cap, from the widest tier down, that all gateways together are over. */
  overspent(agent: Envelope, window: PeriodWindow, epoch: Epoch): Exceeded | undefined {
    const above = agent.parent === undefined ? undefined : this.overspent(agent.parent, window, epoch);
    if (above !== undefined) return above;
    for (const period of PERIODS) {
      const exceeded = this.#exceededOf(agent, period, window, epoch);
      if (exceeded.spentMicroUsd > exceeded.limitMicroUsd) return exceeded;
    }
    return undefined;
  }

  forget(envelope: Envelope): void {
    for (const account of Object.values(this.#accounts.get(envelope) ?? {})) {
      this.#urgent.delete(account);
      this.#unstated.delete(account);
      this.#needed.delete(account);
      this.#byName.delete(keyOf(account));
    }
    this.#accounts.delete(envelope);
  }

  #accountOf(envelope: Envelope, period: Period, window: PeriodWindow): Account {
    const both = this.#accounts.get(envelope) ?? {};
    this.#accounts.set(envelope, both);
    const known = both[period];
    if (known !== undefined) return known;
    const name = nameOf(period, window);
    const account: Account = {
      envelope,
      period,
      name,
      reportedMicroUsd: 0,
      heldMicroUsd: 0,
      exchangedAtMs: -Infinity,
      usedAtMs: -Infinity,
      neededMicroUsd: 0,
      demandMicroUsd: 0,
      refusedAtMs: -Infinity,
      isRecalled: false,
      spentByOthersMicroUsd: 0,
      exhausted: undefined,
    };
    both[period] = account;
    this.#byName.set(keyOf(account), account);
    return account;
  }

  /** A new period is another account, of which nothing is known yet. */
  #roll(account: Account, window: PeriodWindow, epoch: Epoch): void {
    account.envelope.spend(account.period, epoch);
    const name = nameOf(account.period, window);
    if (account.name === name) return;
    this.#byName.delete(keyOf(account));
    Object.assign(account, {
      name,
      reportedMicroUsd: 0,
      heldMicroUsd: 0,
      exchangedAtMs: -Infinity,
      neededMicroUsd: 0,
      isRecalled: false,
    });
    Object.assign(account, {
      spentByOthersMicroUsd: 0,
      exhausted: undefined,
      demandMicroUsd: 0,
      refusedAtMs: -Infinity,
    });
    this.#byName.set(keyOf(account), account);
  }

  #isDue(account: Account, epoch: Epoch, nowMs: number): boolean {
    const { envelope, period } = account;
    const spent = spentOf(account, epoch);
    const granted = envelope.grantedMicroUsd(period);
    const isIdle = nowMs - account.usedAtMs >= IDLE_AFTER_MS;
    if (isIdle && granted > heldBy(account, epoch)) return true;
    const isCapped = envelope.limitMicroUsd(period) !== undefined;
    const isLow = isCapped && !isIdle && granted - heldBy(account, epoch) < this.#wantedBy(account, epoch, nowMs) / 2;
    const sinceMs = nowMs - account.exchangedAtMs;
    return (isLow && sinceMs >= EXHAUSTED_FOR_MS) || (spent !== account.reportedMicroUsd && sinceMs >= REPORT_AFTER_MS);
  }

  /** Predicts the spending of a slice from the spending and reservations since the last exchange. */
  #wantedBy(account: Account, epoch: Epoch, nowMs: number): number {
    const sinceMs = Math.max(1_000, Math.min(nowMs - account.exchangedAtMs, REPORT_AFTER_MS));
    const spent = spentOf(account, epoch) - account.reportedMicroUsd;
    // A long-running operation has a reservation, but no spending yet.
    const rate = Math.max(spent, heldBy(account, epoch) - account.heldMicroUsd) / sinceMs;
    const inUse = account.envelope.reservedMicroUsd / LEAST_WANTED_PARTS;
    return Math.ceil(2 * rate * this.#sliceMs + inUse);
  }

  #rowOf(account: Account, window: PeriodWindow, epoch: Epoch, nowMs: number): AccountRow {
    const { envelope, period } = account;
    const spent = spentOf(account, epoch);
    const isGivenBack =
      account.neededMicroUsd === 0 && (account.isRecalled || nowMs - account.usedAtMs >= IDLE_AFTER_MS);
    const demand = account.demandMicroUsd;
    account.demandMicroUsd = 0;
    account.isRecalled = false;
    if (isGivenBack) envelope.setGranted(period, Math.min(heldBy(account, epoch), envelope.grantedMicroUsd(period)));
    const keptMicroUsd = envelope.grantedMicroUsd(period);
    const isOver = Math.max(0, spent - keptMicroUsd);
    return {
      owner: ownerOf(envelope.owner()),
      period: account.name,
      fromMs: period === 'monthly' ? window.monthlyStartMs : window.dailyStartMs,
      toMs: period === 'monthly' ? window.monthlyResetMs : window.dailyResetMs,
      capMicroUsd: envelope.limitMicroUsd(period) ?? Infinity,
      keptMicroUsd,
      spentMicroUsd: spent,
      // The ledger counts from what is kept or spent, whichever is more.
      neededMicroUsd: Math.max(0, account.neededMicroUsd - isOver),
      wantedMicroUsd: isGivenBack ? 0 : Math.max(demand, this.#wantedBy(account, epoch, nowMs)),
    };
  }
}

export const nameOf = (period: Period, { day, month }: PeriodWindow): string =>
  period === 'monthly' ? `m:${month}` : `d:${day}`;

/** As the ledger names it: `global`, `org/acme`. */
export const ownerOf = (owner: BudgetOwner): string => keyOfOwner(owner).slice('spend/'.length);

/** Under which an account is found by its name in the ledger. */
const keyOf = ({ envelope, name }: Account): string => `${ownerOf(envelope.owner())} ${name}`;

const spentOf = ({ envelope, period }: Account, epoch: Epoch): number => envelope.spend(period, epoch).spentMicroUsd;

/** Spending and reservations of operations. */
const heldBy = (account: Account, epoch: Epoch): number => spentOf(account, epoch) + account.envelope.reservedMicroUsd;
