/** Grants of a cluster's ledger to one gateway, account by account (docs/cluster.md, Budgets). */
import { EndedAccounts } from './ended-accounts.ts';
import type { AlertPercent } from './envelope.ts';

/** An account of the ledger: an owner in one named period, such as `org/acme` in `d:2026-11-25`. */
export type AccountName = { readonly owner: string; readonly period: string };

/**
 * A gateway's report about an account, in whole micro-dollars, or in what a limit counts. Absolute and cumulative, so
 * that repeats do no harm.
 */
export type AccountRow = AccountName & {
  readonly fromMs: number;
  readonly toMs: number;
  /** Infinity: there is none, and spend is only reported. */
  readonly capMicroUsd: number;
  /** The part of the grant that this run keeps, spent or not. It has already lowered its own grant to that. */
  readonly keptMicroUsd: number;
  /** Spent in this run. Falls only where a span slides: see `Limit.everyMs`. */
  readonly spentMicroUsd: number;
  /** Wanted beyond what is kept; granted whole or not at all. */
  readonly neededMicroUsd: number;
  readonly wantedMicroUsd: number;
  /** The part of the cap that people have added, as far as this run knows. */
  readonly raised?: Raised | undefined;
};

/** How much people have added to the maximum of a limit, and when they last did. */
export type Raised = { readonly amount: number; readonly atMs: number };

/** The ledger's answer about an account. */
export type Grant = AccountName & {
  readonly grantedMicroUsd: number;
  readonly spentByAllMicroUsd: number;
  readonly heldByAllMicroUsd: number;
  /** This exchange has made spend reach that part of the cap. */
  readonly alertPercent: AlertPercent | undefined;
  /** The latest that any run knows. */
  readonly raised?: Raised | undefined;
  /** Its session or lineage has ended: what was reported counts no more. */
  readonly isOver?: boolean;
};

export type Exhausted = {
  readonly fromMicroUsd: number;
  readonly untilMs: number;
  readonly isUnconfirmed: boolean;
};

/** A gateway's side of an account. `Now` is what it needs to know about the present. */
export abstract class EscrowAccount<Now> {
  abstract readonly owner: string;
  abstract readonly period: string;
  /** Nothing is counted in it any more. */
  abstract readonly isGone: boolean;
  abstract granted: number;
  /** Held by operations. */
  abstract readonly reserved: number;
  abstract spent(now: Now): number;
  /** Infinity: there is none. */
  abstract cap(now: Now): number;
  abstract span(now: Now): { readonly fromMs: number; readonly toMs: number };
  /** Whether its period has ended: from now on it is another account, of which nothing is known yet. */
  isOver(_: Now): boolean {
    return false;
  }
  begin(_: Now): void {}
  /** Whether the ledger is to hear that it is in use, or asked whether it still is anywhere. */
  isStale(_: Now): boolean {
    return false;
  }
  /** See `AccountRow`. */
  raised(_: Now): Raised | undefined {
    return undefined;
  }

  reportedMicroUsd = 0;
  /** Spent or reserved at that time. */
  heldMicroUsd = 0;
  exchangedAtMs = -Infinity;
  /** When a check last used it. */
  usedAtMs = -Infinity;
  neededMicroUsd = 0;
  /** The sum that all waiting checks lack. */
  demandMicroUsd = 0;
  /** When the ledger has last said that there is no room. */
  refusedAtMs = -Infinity;
  /** Asked for by another gateway. */
  isRecalled = false;
  spentByOthersMicroUsd = 0;
  exhausted: Exhausted | undefined;

  /** Spending and reservations of operations. */
  held(now: Now): number {
    return this.spent(now) + this.reserved;
  }

  forgetAnswers(): void {
    this.reportedMicroUsd = 0;
    this.heldMicroUsd = 0;
    this.exchangedAtMs = -Infinity;
    this.neededMicroUsd = 0;
    this.demandMicroUsd = 0;
    this.refusedAtMs = -Infinity;
    this.isRecalled = false;
    this.spentByOthersMicroUsd = 0;
    this.exhausted = undefined;
  }
}

const IDLE_AFTER_MS = 10_000;
const REPORT_AFTER_MS = 10_000;
const EXHAUSTED_FOR_MS = 1_000;
const RECALLED_AGAIN_MS = 1_000;
const LEAST_WANTED_PARTS = 4;

const keyOf = ({ owner, period }: AccountName): string => `${owner} ${period}`;

/**
 * The grants of a cluster's ledger to this gateway. A grant is lowered here before the ledger is told, and raised after
 * it has said so: the grant that this gateway counts is never more than the sum that the ledger has put aside for it.
 */
export class Escrow<Now, A extends EscrowAccount<Now>> {
  readonly #byName = new Map<string, A>();
  /** Exchanged at once: a check waits, or another gateway does. */
  readonly #urgent = new Set<A>();
  /** To be said again, behind the urgent ones. */
  readonly #unstated = new Set<A>();
  /** Accounts that waiting checks need. */
  readonly #needed = new Set<A>();
  readonly #ended = new EndedAccounts<AccountRow>();
  readonly #sliceMs: number;
  readonly #lookedAtOnce: number;

  /** `sliceMs`: for how long a grant is to last. `lookedAtOnce`: how many accounts `due` looks at in one call. */
  constructor(sliceMs: number, lookedAtOnce = Infinity) {
    this.#sliceMs = sliceMs;
    this.#lookedAtOnce = lookedAtOnce;
  }

  find(name: AccountName): A | undefined {
    return this.#byName.get(keyOf(name));
  }

  open(account: A): A {
    this.#byName.set(keyOf(account), account);
    return account;
  }

  forget(account: A): void {
    this.#urgent.delete(account);
    this.#unstated.delete(account);
    this.#needed.delete(account);
    this.#byName.delete(keyOf(account));
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
  need(account: A, lacksMicroUsd: number, nowMs: number): void {
    if (account.neededMicroUsd === 0) account.neededMicroUsd = lacksMicroUsd; // that of the oldest check
    account.demandMicroUsd += lacksMicroUsd;
    account.usedAtMs = nowMs;
    this.#needed.add(account);
    this.#urgent.add(account);
  }

  /** A check got this and lacks other things: it holds up nobody who could use it. */
  giveBackNeed(account: A, lacksMicroUsd: number, now: Now): void {
    account.granted = Math.min(account.granted, Math.max(account.held(now), account.granted - lacksMicroUsd));
    this.#urgent.add(account);
  }

  /**
   * A check has waited in vain. For amounts from its own upwards, checks are denied at once for a second; where the
   * ledger is only slow, no other check is.
   */
  exhaust(account: A, lacksMicroUsd: number, nowMs: number, isUnreachable: boolean): void {
    const isRefused = nowMs - account.refusedAtMs <= EXHAUSTED_FOR_MS;
    const forMs = isRefused || isUnreachable ? EXHAUSTED_FOR_MS : 1;
    const isUnconfirmed = isUnreachable || !isRefused;
    account.exhausted = { fromMicroUsd: lacksMicroUsd, untilMs: nowMs + forMs, isUnconfirmed };
    account.neededMicroUsd = 0;
    account.demandMicroUsd = 0;
  }

  /** Has it exchanged at once. */
  hurry(account: A): void {
    this.#urgent.add(account);
  }

  /**
   * Another gateway has nothing left of these: what is not in use here is given back with the next exchange. Where
   * nothing is, the ledger may think otherwise: it is told again, once a second at most.
   */
  recall(names: readonly AccountName[], now: Now, nowMs: number): boolean {
    let isAny = false;
    for (const name of names) {
      const account = this.find(name);
      if (account === undefined) continue;
      const isEmpty = account.held(now) >= account.granted;
      if (isEmpty && nowMs - account.exchangedAtMs < RECALLED_AGAIN_MS) continue;
      account.isRecalled = true;
      this.#urgent.add(account);
      isAny = true;
    }
    return isAny;
  }

  /** Caps of these may be lower now: what is not in use of them is given back with the next exchange. */
  giveBack(isLowered: (account: A) => boolean): void {
    for (const account of this.#byName.values()) {
      if (!isLowered(account)) continue;
      account.isRecalled = true;
      this.#urgent.add(account);
    }
  }

  /** Reports unreported spending with the next exchange, for so many accounts at most. */
  report(most: number, now: Now): void {
    for (const account of [...this.#byName.values()]) {
      if (this.#urgent.size >= most) return;
      this.#roll(account, now);
      if (account.spent(now) !== account.reportedMicroUsd) this.#urgent.add(account);
    }
  }

  /**
   * Another server may have forgotten what its predecessor was told, or an exchange of these had no answer, and the
   * ledger may have granted what is not known here: the next exchanges say it again.
   */
  restate(names?: readonly AccountName[]): void {
    if (names === undefined) for (const account of this.#byName.values()) this.#unstated.add(account);
    else
      for (const name of names) {
        const account = this.find(name);
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
  due(most: number, all: boolean, now: Now, nowMs: number): readonly AccountRow[] {
    const mostRunning = most - this.#ended.due;
    const accounts = new Set([...this.#urgent].slice(0, mostRunning));
    for (const account of accounts) this.#urgent.delete(account);
    for (const account of this.#unstated) {
      if (accounts.size >= mostRunning) break;
      this.#unstated.delete(account);
      if (!account.isGone) accounts.add(account);
    }
    if (all) this.#addDue(accounts, mostRunning, now, nowMs);
    const running = Array.from(accounts, (account) => {
      this.#roll(account, now);
      this.#moveBehind(account);
      return this.#rowOf(account, now, nowMs);
    });
    return this.#ended.behind(running, most, nowMs);
  }

  #addDue(accounts: Set<A>, most: number, now: Now, nowMs: number): void {
    for (const account of [...first(this.#byName.values(), this.#lookedAtOnce)]) {
      if (accounts.size === most) return;
      this.#roll(account, now);
      if (account.neededMicroUsd > 0 || this.#isDue(account, now, nowMs)) accounts.add(account);
      else if (this.#lookedAtOnce < this.#byName.size) this.#moveBehind(account);
    }
  }

  /** If more are due than fit, those that were not exchanged for the longest time come first. */
  #moveBehind(account: A): void {
    const key = keyOf(account);
    if (this.#byName.delete(key)) this.#byName.set(key, account);
  }

  /**
   * Every account that the ledger does not know as it is, with nothing kept beyond what is spent and what running
   * operations may spend: this run ends, and they go on. The ledger frees the latter once their reservations would have
   * expired.
   */
  closing(now: Now, nowMs: number): readonly AccountRow[] {
    const isNews = (account: A): boolean =>
      this.#unstated.has(account) ||
      account.spent(now) !== account.reportedMicroUsd ||
      account.granted > account.held(now);
    for (const account of [...this.#byName.values()]) this.#roll(account, now);
    const running = [...this.#byName.values()].filter(isNews).map((account) => {
      const { granted } = account;
      const keptMicroUsd = Math.min(account.held(now), Math.max(granted, account.spent(now)));
      account.granted = Math.min(keptMicroUsd, granted);
      return { ...this.#rowOf(account, now, Infinity), keptMicroUsd, neededMicroUsd: 0, wantedMicroUsd: 0 };
    });
    return this.#ended.behind(running, Infinity, nowMs);
  }

  /** Their period ends: the ledger is told with the next exchange what it has not heard, and nothing is kept. */
  end(isEnding: (account: A) => boolean, now: Now): void {
    for (const account of this.#byName.values()) {
      if (!isEnding(account) || account.isGone || account.spent(now) === account.reportedMicroUsd) continue;
      const row = this.#rowOf(account, now, -Infinity);
      this.#ended.add({ ...row, keptMicroUsd: row.spentMicroUsd, neededMicroUsd: 0, wantedMicroUsd: 0 });
    }
  }

  /** Gives up what is not in use, without the ledger: this gateway may have been replaced without knowing. */
  freeze(now: Now): void {
    for (const account of [...this.#byName.values()]) {
      this.#roll(account, now);
      account.granted = Math.min(account.held(now), account.granted);
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

  /** Takes the answer to the latest exchange, and passes on what it was of each account. */
  grant(
    rows: readonly AccountRow[],
    grants: readonly Grant[],
    now: Now,
    nowMs: number,
    onGranted: (account: A, row: AccountRow, grant: Grant) => void,
  ): void {
    const sent = new Map(rows.map((row) => [keyOf(row), row]));
    for (const grant of grants) {
      this.#ended.drop(grant);
      const account = this.find(grant);
      const row = sent.get(keyOf(grant));
      if (account === undefined || row === undefined || account.isGone) continue;
      this.#roll(account, now);
      if (account.period !== grant.period) continue; // midnight has passed meanwhile
      if (row.capMicroUsd !== Infinity) account.granted = grant.grantedMicroUsd;
      account.reportedMicroUsd = row.spentMicroUsd;
      account.heldMicroUsd = account.held(now);
      account.spentByOthersMicroUsd = grant.spentByAllMicroUsd - row.spentMicroUsd;
      account.exchangedAtMs = nowMs;
      const needed = row.neededMicroUsd;
      if (needed > 0 && grant.grantedMicroUsd >= Math.max(row.keptMicroUsd, row.spentMicroUsd) + needed) {
        account.neededMicroUsd = 0;
        account.exhausted = undefined;
      } else if (needed > row.capMicroUsd - grant.spentByAllMicroUsd - grant.heldByAllMicroUsd)
        account.refusedAtMs = nowMs; // else there is room, and the ledger grants nothing to anybody at the moment
      onGranted(account, row, grant);
    }
  }

  #roll(account: A, now: Now): void {
    if (!account.isOver(now)) return;
    this.#byName.delete(keyOf(account));
    account.begin(now);
    account.forgetAnswers();
    this.#byName.set(keyOf(account), account);
  }

  #isDue(account: A, now: Now, nowMs: number): boolean {
    const held = account.held(now);
    const isIdle = nowMs - account.usedAtMs >= IDLE_AFTER_MS;
    if (isIdle && account.granted > held) return true;
    const isLow =
      !isIdle && account.cap(now) !== Infinity && account.granted - held < this.#wantedBy(account, now, nowMs) / 2;
    const sinceMs = nowMs - account.exchangedAtMs;
    if (isLow && sinceMs >= EXHAUSTED_FOR_MS) return true;
    return sinceMs >= REPORT_AFTER_MS && (account.spent(now) !== account.reportedMicroUsd || account.isStale(now));
  }

  /** Predicts the spending of a slice from the spending and reservations since the last exchange. */
  #wantedBy(account: A, now: Now, nowMs: number): number {
    const sinceMs = Math.max(1_000, Math.min(nowMs - account.exchangedAtMs, REPORT_AFTER_MS));
    const spent = account.spent(now) - account.reportedMicroUsd;
    // A long-running operation has a reservation, but no spending yet.
    const rate = Math.max(spent, account.held(now) - account.heldMicroUsd) / sinceMs;
    const inUse = account.reserved / LEAST_WANTED_PARTS;
    return Math.max(0, Math.ceil(2 * rate * this.#sliceMs + inUse));
  }

  #rowOf(account: A, now: Now, nowMs: number): AccountRow {
    const spent = account.spent(now);
    const isGivenBack =
      account.neededMicroUsd === 0 && (account.isRecalled || nowMs - account.usedAtMs >= IDLE_AFTER_MS);
    const demand = account.demandMicroUsd;
    account.demandMicroUsd = 0;
    account.isRecalled = false;
    if (isGivenBack) account.granted = Math.min(account.held(now), account.granted);
    const keptMicroUsd = account.granted;
    const isOver = Math.max(0, spent - keptMicroUsd);
    return {
      owner: account.owner,
      period: account.period,
      ...account.span(now),
      capMicroUsd: account.cap(now),
      keptMicroUsd,
      spentMicroUsd: spent,
      // The ledger counts from what is kept or spent, whichever is more.
      neededMicroUsd: Math.max(0, account.neededMicroUsd - isOver),
      wantedMicroUsd: isGivenBack ? 0 : Math.max(demand, this.#wantedBy(account, now, nowMs)),
      raised: account.raised(now),
    };
  }
}

function* first<T>(all: Iterable<T>, most: number): Generator<T> {
  let count = 0;
  for (const each of all) {
    if (count === most) return;
    count += 1;
    yield each;
  }
}
