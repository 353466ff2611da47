import { PERIODS, type Period } from './config.ts';
import type { BudgetAlert, BudgetOwner, Envelope, Epoch, Exceeded } from './envelope.ts';
import { type AccountRow, Escrow, EscrowAccount, type Grant } from './escrow.ts';
import type { PeriodWindow } from './period.ts';
import { keyOfOwner } from './rows.ts';

/** An amount that a waiting check lacks of a cap. */
export type BudgetShortage = { readonly envelope: Envelope; readonly period: Period; readonly lacksMicroUsd: number };

/** The running periods. */
export type BudgetNow = { readonly window: PeriodWindow; readonly epoch: Epoch };

class BudgetAccount extends EscrowAccount<BudgetNow> {
  readonly owner: string;
  readonly envelope: Envelope;
  readonly kind: Period;
  period: string;

  constructor(envelope: Envelope, kind: Period, window: PeriodWindow) {
    super();
    this.owner = ownerOf(envelope.owner());
    this.envelope = envelope;
    this.kind = kind;
    this.period = nameOf(kind, window);
  }

  get isGone(): boolean {
    return this.envelope.removed;
  }

  get granted(): number {
    return this.envelope.grantedMicroUsd(this.kind);
  }

  set granted(microUsd: number) {
    this.envelope.setGranted(this.kind, microUsd);
  }

  get reserved(): number {
    return this.envelope.reservedMicroUsd;
  }

  spent({ epoch }: BudgetNow): number {
    return this.envelope.spend(this.kind, epoch).spentMicroUsd;
  }

  cap(): number {
    return this.envelope.limitMicroUsd(this.kind) ?? Infinity;
  }

  span({ window }: BudgetNow): { readonly fromMs: number; readonly toMs: number } {
    return this.kind === 'monthly'
      ? { fromMs: window.monthlyStartMs, toMs: window.monthlyResetMs }
      : { fromMs: window.dailyStartMs, toMs: window.dailyResetMs };
  }

  override isOver({ window, epoch }: BudgetNow): boolean {
    this.envelope.spend(this.kind, epoch);
    return this.period !== nameOf(this.kind, window);
  }

  override begin({ window }: BudgetNow): void {
    this.period = nameOf(this.kind, window);
  }
}

/** The grants of the ledger for caps: an envelope has an account for each of its periods. */
export class BudgetGrants {
  readonly #accounts = new Map<Envelope, Partial<Record<Period, BudgetAccount>>>();
  readonly escrow: Escrow<BudgetNow, BudgetAccount>;

  /** `sliceMs`: for how long a grant is to last. */
  constructor(sliceMs: number) {
    this.escrow = new Escrow(sliceMs);
  }

  /** Every account that lacks something for this cost, the widest first. */
  shortagesOf(agent: Envelope, costMicroUsd: number, freedMicroUsd: number): readonly BudgetShortage[] {
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
  exhaustedBy(shortages: readonly BudgetShortage[], now: BudgetNow, nowMs: number): Exceeded | undefined {
    let inDoubt: Exceeded | undefined;
    for (const { envelope, period, lacksMicroUsd } of shortages) {
      const exhausted = this.#accounts.get(envelope)?.[period]?.exhausted;
      if (exhausted === undefined || nowMs >= exhausted.untilMs || lacksMicroUsd < exhausted.fromMicroUsd) continue;
      const exceeded = this.#exceededOf(envelope, period, now);
      if (!exhausted.isUnconfirmed) return exceeded;
      inDoubt ??= { ...exceeded, doubt: 'unconfirmed' };
    }
    return inDoubt;
  }

  #exceededOf(envelope: Envelope, period: Period, { window, epoch }: BudgetNow): Exceeded {
    return {
      tier: envelope.tier,
      period,
      spentMicroUsd: envelope.spend(period, epoch).spentMicroUsd + this.spentByOthers(envelope, period, window),
      reservedMicroUsd: envelope.reservedMicroUsd,
      limitMicroUsd: envelope.limitMicroUsd(period) ?? Number.MAX_SAFE_INTEGER,
    };
  }

  /** Notes what a waiting check needs: it is asked for with the next exchange. */
  need(shortages: readonly BudgetShortage[], { window }: BudgetNow, nowMs: number): void {
    for (const { envelope, period, lacksMicroUsd } of shortages)
      this.escrow.need(this.#accountOf(envelope, period, window), lacksMicroUsd, nowMs);
  }

  /** A check got these and lacks others: it holds up nobody who could use them. */
  giveBackNeeds(shortages: readonly BudgetShortage[], now: BudgetNow): void {
    for (const { envelope, period, lacksMicroUsd } of shortages)
      this.escrow.giveBackNeed(this.#accountOf(envelope, period, now.window), lacksMicroUsd, now);
  }

  /** A check has waited in vain: see `Escrow.exhaust`. */
  exhaust(shortages: readonly BudgetShortage[], { window }: BudgetNow, nowMs: number, isUnreachable: boolean): void {
    for (const { envelope, period, lacksMicroUsd } of shortages)
      this.escrow.exhaust(this.#accountOf(envelope, period, window), lacksMicroUsd, nowMs, isUnreachable);
  }

  /** Spend or a reservation has touched it. What has no cap is reported once something is spent. */
  touch(agent: Envelope, isSpend: boolean, window: PeriodWindow, nowMs: number): void {
    for (let each: Envelope | undefined = agent; each !== undefined; each = each.parent) {
      if (each.isPlaceholder) continue;
      for (const period of PERIODS)
        if (isSpend || each.limitMicroUsd(period) !== undefined) this.#accountOf(each, period, window).usedAtMs = nowMs;
    }
  }

  /** The period ends, while it is the one of `now`. */
  end(kind: Period, now: BudgetNow): void {
    this.escrow.end((account) => account.kind === kind && account.period === nameOf(kind, now.window), now);
  }

  /** Reports the spending of these accounts, and of the wider ones, with the next exchange. */
  reportOf(agent: Envelope, window: PeriodWindow): void {
    for (let each: Envelope | undefined = agent; each !== undefined; each = each.parent)
      if (!each.isPlaceholder) for (const period of PERIODS) this.escrow.hurry(this.#accountOf(each, period, window));
  }

  /** Takes the answer to the latest exchange. Returns the alerts that it raises. */
  grant(rows: readonly AccountRow[], grants: readonly Grant[], now: BudgetNow, nowMs: number): BudgetAlert[] {
    const alerts: BudgetAlert[] = [];
    this.escrow.grant(rows, grants, now, nowMs, ({ envelope, kind }, { capMicroUsd }, grant) => {
      if (grant.alertPercent === undefined) return;
      alerts.push({
        ...envelope.owner(),
        period: kind,
        percent: grant.alertPercent,
        spentMicroUsd: grant.spentByAllMicroUsd,
        limitMicroUsd: capMicroUsd,
      });
    });
    return alerts;
  }

  /** Returns the spending of other gateways, as of the latest exchange. */
  spentByOthers(envelope: Envelope, period: Period, window: PeriodWindow): number {
    const account = this.#accounts.get(envelope)?.[period];
    return account?.period === nameOf(period, window) ? account.spentByOthersMicroUsd : 0;
  }

  /** The first cap, from the widest tier down, that all gateways together are over. */
  overspent(agent: Envelope, now: BudgetNow): Exceeded | undefined {
    const above = agent.parent === undefined ? undefined : this.overspent(agent.parent, now);
    if (above !== undefined) return above;
    for (const period of PERIODS) {
      const exceeded = this.#exceededOf(agent, period, now);
      if (exceeded.spentMicroUsd > exceeded.limitMicroUsd) return exceeded;
    }
    return undefined;
  }

  forget(envelope: Envelope): void {
    for (const account of Object.values(this.#accounts.get(envelope) ?? {})) this.escrow.forget(account);
    this.#accounts.delete(envelope);
  }

  #accountOf(envelope: Envelope, period: Period, window: PeriodWindow): BudgetAccount {
    const both = this.#accounts.get(envelope) ?? {};
    this.#accounts.set(envelope, both);
    both[period] ??= this.escrow.open(new BudgetAccount(envelope, period, window));
    return both[period];
  }
}

export const nameOf = (period: Period, { day, month }: PeriodWindow): string =>
  period === 'monthly' ? `m:${month}` : `d:${day}`;

/** As the ledger names it: `global`, `org/acme`. */
export const ownerOf = (owner: BudgetOwner): string => keyOfOwner(owner).slice('spend/'.length);
