import { PERIODS, type Period, type Tier, type TierLimits } from './config.ts';

/** The place of an envelope's numbers: `CELLS` of them from `at` on. */
export type LedgerRow = { readonly cells: Float64Array; readonly at: number };

/** The cells of a row. */
const MONTHLY = 0;
const DAILY = 1;
const RESERVED = 2;
const DAY = 3; // the day, counted from the epoch, to which MONTHLY and DAILY belong
const GRANTED_MONTHLY = 4; // what the ledger of a cluster has granted this gateway, spent or not
const GRANTED_DAILY = 5;
// The spend of the period before, less that of MONTHLY or DAILY when that period was left: see `turn`.
const BEFORE_MONTHLY = 6;
const BEFORE_DAILY = 7;
const CELLS = 8; // one line of the processor's cache

/** A row of zeros that is in no ledger. */
export const looseRow = (): LedgerRow => ({ cells: new Float64Array(CELLS), at: 0 });

const ROWS_PER_BLOCK = 4_096;

/**
 * The numbers of all envelopes. As fields of an object each would be a box of its own somewhere on the heap; here the
 * four that every check reads lie side by side, in one line of the processor's cache.
 */
export class Ledger {
  #block = new Float64Array(0);
  #used = 0;
  readonly #free: LedgerRow[] = [];

  /** A row of zeros. */
  take(): LedgerRow {
    const freed = this.#free.pop();
    if (freed !== undefined) return freed;
    if (this.#used === this.#block.length) {
      this.#block = new Float64Array(ROWS_PER_BLOCK * CELLS);
      this.#used = 0;
    }
    const row = { cells: this.#block, at: this.#used };
    this.#used += CELLS;
    return row;
  }

  /** Frees the row: nothing may read or write it afterwards. */
  giveBack(row: LedgerRow): void {
    row.cells.fill(0, row.at, row.at + CELLS);
    this.#free.push(row);
  }
}

/** The first cap, in the order of enforcement, that leaves no room. `limitMicroUsd` is the cap as it was then. */
export type Exceeded = {
  readonly tier: Tier;
  readonly period: Period;
  readonly spentMicroUsd: number;
  readonly reservedMicroUsd: number;
  readonly limitMicroUsd: number;
  /**
   * `short`: there may be room, but the ledger has not granted enough of it. `unconfirmed`: it could not be asked.
   */
  readonly doubt?: 'short' | 'unconfirmed';
};

/** Whose money it is. Names below the tier are null; an org of '' means no org. */
export type BudgetOwner = {
  readonly tier: Tier;
  readonly orgId: string | null;
  readonly teamId: string | null;
  readonly agentId: string | null;
};

/** Raised once per period and threshold of a cap, by the usage record that reached the threshold. */
export type BudgetAlert = BudgetOwner & {
  readonly period: Period;
  readonly percent: AlertPercent;
  readonly spentMicroUsd: number;
  readonly limitMicroUsd: number;
};

const ALERT_PERCENTS = [80, 100] as const;
export type AlertPercent = (typeof ALERT_PERCENTS)[number];

/** The caps of one tier, shared by all its envelopes so that a reload changes them at once. Infinity: no cap. */
export type Caps = Record<Period, number> & {
  /** Only what a ledger has granted may be spent. Never where there is no cap. */
  isGranted: boolean;
};

export const NO_CAPS: Readonly<Caps> = { monthly: Infinity, daily: Infinity, isGranted: false };

/** `hasLedger`: several gateways share the caps. */
export function setCaps(caps: Caps, limits: TierLimits, hasLedger: boolean): void {
  for (const period of PERIODS) caps[period] = limits[period] ?? Infinity;
  caps.isGranted = hasLedger && PERIODS.some((period) => caps[period] !== Infinity);
}

/**
 * Counts the months and days that have begun. An envelope with an older count has spent nothing in the current period.
 * `monthBefore` and `dayBefore` are those to which a clock that is set may return.
 */
export type Epoch = { month: number; day: number; monthBefore: number; dayBefore: number };

const [FIRST_ALERT, LAST_ALERT] = ALERT_PERCENTS;
const MOST = Number.MAX_SAFE_INTEGER;

/**
 * The state of an envelope in one period. `alertedPercent` is the highest threshold that raised an alert, 0 for none.
 */
export type Spend = { readonly spentMicroUsd: number; readonly alertedPercent: number };

/**
 * The money of one org, team or agent, or of all of them. Envelopes form a tree, and a cost goes into an agent's and
 * all those above it. Kept small and flat: there is one for every agent, and every check reads four.
 */
export class Envelope {
  // Fields that every check reads come first, so that they are in one line of the cache.
  readonly parent: Envelope | undefined;
  #caps: Readonly<Caps>;
  readonly #cells: Float64Array;
  readonly #at: number;
  /** No longer in the tree. */
  removed = false;
  readonly tier: Tier;
  readonly name: string;
  /** Grows with every envelope. A page of a listing goes on after the sequence numbers of the last envelope shown. */
  readonly sequence: number;
  readonly children: Map<string, Envelope> | undefined;
  #month = 0;
  #monthlyAlerted = 0;
  #dailyAlerted = 0;

  /** Somebody holds it as a handle, so it stays in the tree. */
  pinned = false;
  /** Changed since the changes were last drained. */
  dirty = false;
  /** The store has a row of it. */
  stored = false;

  constructor(
    tier: Tier,
    name: string,
    parent: Envelope | undefined,
    sequence: number,
    caps: Readonly<Caps>,
    { cells, at }: LedgerRow,
  ) {
    this.parent = parent;
    this.#caps = caps;
    this.#cells = cells;
    this.#at = at;
    this.tier = tier;
    this.name = name;
    this.sequence = sequence;
    this.children = tier === 'agent' ? undefined : new Map();
  }

  /** Other caps hold from now on. */
  set caps(caps: Readonly<Caps>) {
    this.#caps = caps;
  }

  /** The names from the org down to it. */
  get path(): readonly string[] {
    return this.parent === undefined ? [] : [...this.parent.path, this.name];
  }

  /** Returned to the ledger when the envelope is removed. */
  get row(): LedgerRow {
    return { cells: this.#cells, at: this.#at };
  }

  get reservedMicroUsd(): number {
    return this.#cells[this.#at + RESERVED]!;
  }

  /**
   * The first cap, from the widest tier down, that the cost would exceed. A cost of 0 exceeds a cap only where spend
   * alone does. `freedMicroUsd` is reserved now, and released as the cost is reserved.
   */
  firstExceeded(costMicroUsd: number, freedMicroUsd: number, epoch: Epoch): Exceeded | undefined {
    const above = this.parent?.firstExceeded(costMicroUsd, freedMicroUsd, epoch);
    if (above !== undefined) return above;
    this.#roll(epoch);
    const cells = this.#cells;
    const at = this.#at;
    const added = costMicroUsd === 0 ? 0 : cells[at + RESERVED]! - freedMicroUsd + costMicroUsd;
    // A reservation is released in the amount in which it was made, so the sum must stay exact even without a cap.
    if (cells[at + MONTHLY]! + added > this.#caps.monthly || added > MOST) return this.#exceeded('monthly');
    if (cells[at + DAILY]! + added > this.#caps.daily) return this.#exceeded('daily');
    return this.#caps.isGranted ? this.#firstShort(added) : undefined;
  }

  #firstShort(added: number): Exceeded | undefined {
    const period = PERIODS.find((each) => this.lacks(each, added) > 0);
    return period === undefined ? undefined : { ...this.#exceeded(period), doubt: 'short' };
  }

  /** How much more would have to be granted for this to be added; 0 where nothing has to be. */
  lacks(period: Period, added: number): number {
    if (this.#caps[period] === Infinity) return 0;
    const spent = this.#cells[this.#at + (period === 'monthly' ? MONTHLY : DAILY)]!;
    return Math.max(0, spent + added - this.grantedMicroUsd(period));
  }

  /** In the running period, as of the latest call that was given the epoch. */
  grantedMicroUsd(period: Period): number {
    return this.#cells[this.#at + (period === 'monthly' ? GRANTED_MONTHLY : GRANTED_DAILY)]!;
  }

  setGranted(period: Period, microUsd: number): void {
    this.#cells[this.#at + (period === 'monthly' ? GRANTED_MONTHLY : GRANTED_DAILY)] = microUsd;
  }

  hold(microUsd: number): void {
    this.#cells[this.#at + RESERVED]! += microUsd;
  }

  /** True when an alert is due. Spend stops growing at the largest exact number, far above every possible cap. */
  add(microUsd: number, epoch: Epoch): boolean {
    this.#roll(epoch);
    this.#monthlyAlerted = stillAlerted(this.#monthlyAlerted, this.#cells[this.#at + MONTHLY]!, this.#caps.monthly);
    this.#dailyAlerted = stillAlerted(this.#dailyAlerted, this.#cells[this.#at + DAILY]!, this.#caps.daily);
    const monthly = Math.min(this.#cells[this.#at + MONTHLY]! + microUsd, MOST);
    const daily = Math.min(this.#cells[this.#at + DAILY]! + microUsd, MOST);
    this.#cells[this.#at + MONTHLY] = monthly;
    this.#cells[this.#at + DAILY] = daily;
    return (
      isAlertDue(monthly, this.#caps.monthly, this.#monthlyAlerted) ||
      isAlertDue(daily, this.#caps.daily, this.#dailyAlerted)
    );
  }

  /**
   * The alerts for thresholds that spend has reached and that have raised none in this period yet. Each is returned
   * only once.
   */
  takeAlerts(epoch: Epoch): BudgetAlert[] {
    this.#roll(epoch);
    const alerts: BudgetAlert[] = [];
    for (const period of PERIODS) {
      const { spentMicroUsd, alertedPercent } = this.spend(period, epoch);
      const limitMicroUsd = this.#caps[period];
      for (const percent of ALERT_PERCENTS) {
        if (percent <= alertedPercent || !hasReached(percent, spentMicroUsd, limitMicroUsd)) continue;
        alerts.push({ ...this.owner(), period, percent, spentMicroUsd, limitMicroUsd });
        if (period === 'monthly') this.#monthlyAlerted = percent;
        else this.#dailyAlerted = percent;
      }
    }
    return alerts;
  }

  spend(period: Period, epoch: Epoch): Spend {
    this.#roll(epoch);
    return period === 'monthly'
      ? { spentMicroUsd: this.#cells[this.#at + MONTHLY]!, alertedPercent: this.#monthlyAlerted }
      : { spentMicroUsd: this.#cells[this.#at + DAILY]!, alertedPercent: this.#dailyAlerted };
  }

  setSpend(monthly: Spend, daily: Spend, epoch: Epoch): void {
    this.#roll(epoch);
    this.#cells[this.#at + MONTHLY] = monthly.spentMicroUsd;
    this.#monthlyAlerted = monthly.alertedPercent;
    this.#cells[this.#at + DAILY] = daily.spentMicroUsd;
    this.#dailyAlerted = daily.alertedPercent;
  }

  limitMicroUsd(period: Period): number | undefined {
    const limit = this.#caps[period];
    return Number.isFinite(limit) ? limit : undefined;
  }

  /** True when it has no money, no handle, no children and nothing unsaved, so that removing it loses nothing. */
  isIdle(epoch: Epoch, isInDoubt: boolean): boolean {
    this.#roll(epoch);
    const holdsMoney =
      this.#cells[this.#at + RESERVED] !== 0 ||
      this.#cells[this.#at + MONTHLY] !== 0 ||
      this.#cells[this.#at + DAILY] !== 0;
    const isGranted = PERIODS.some((period) => this.grantedMicroUsd(period) > 0);
    const hasBefore =
      isInDoubt && (this.#cells[this.#at + BEFORE_MONTHLY] !== 0 || this.#cells[this.#at + BEFORE_DAILY] !== 0);
    return !this.pinned && !this.dirty && !isGranted && !holdsMoney && !hasBefore && (this.children?.size ?? 0) === 0;
  }

  owner(): BudgetOwner {
    const above = this.parent?.owner();
    switch (this.tier) {
      case 'global':
        return { tier: 'global', orgId: null, teamId: null, agentId: null };
      case 'org':
        return { tier: 'org', orgId: this.name, teamId: null, agentId: null };
      case 'team':
        return { tier: 'team', orgId: above?.orgId ?? '', teamId: this.name, agentId: null };
      case 'agent':
        return { tier: 'agent', orgId: above?.orgId ?? '', teamId: above?.teamId ?? '', agentId: this.name };
    }
  }

  /**
   * Agents without an org share no org tier: theirs only holds the tree together, without caps, never saved and never
   * shown.
   */
  get isPlaceholder(): boolean {
    return this.tier === 'org' && this.name === '';
  }

  #exceeded(period: Period): Exceeded {
    return {
      tier: this.tier,
      period,
      spentMicroUsd: this.#cells[this.#at + (period === 'monthly' ? MONTHLY : DAILY)]!,
      reservedMicroUsd: this.reservedMicroUsd,
      limitMicroUsd: Math.min(this.#caps[period], MOST),
    };
  }

  #roll(epoch: Epoch): void {
    const day = this.#cells[this.#at + DAY]!;
    if (day === epoch.day) return; // a month never begins without a new day
    this.#cells[this.#at + DAY] = epoch.day;
    this.#leave(DAILY, BEFORE_DAILY, day - epoch.dayBefore);
    this.#cells[this.#at + GRANTED_DAILY] = 0;
    this.#dailyAlerted = 0;
    if (this.#month === epoch.month) return;
    this.#leave(MONTHLY, BEFORE_MONTHLY, this.#month - epoch.monthBefore);
    this.#month = epoch.month;
    this.#cells[this.#at + GRANTED_MONTHLY] = 0;
    this.#monthlyAlerted = 0;
  }

  /** `since`: how many periods after the one to which the clock may return this was used last. */
  #leave(spent: number, before: number, since: number): void {
    const cells = this.#cells;
    const at = this.#at;
    const known = since > 0 ? cells[at + before]! : 0;
    cells[at + before] = since < 0 ? 0 : known + cells[at + spent]!;
    cells[at + spent] = 0;
  }

  /**
   * The clock was set, and the period is another one, without having ended. If that was left before, its spend is known
   * again, with all that was spent since: nobody knows which of both the time was really in. If not, what counts in
   * the one that is left counts in the other as well.
   */
  turn(period: Period, isKnown: boolean, epoch: Epoch): void {
    this.#roll(epoch);
    const cells = this.#cells;
    const at = this.#at;
    const [spent, before] =
      period === 'monthly' ? [at + MONTHLY, at + BEFORE_MONTHLY] : [at + DAILY, at + BEFORE_DAILY];
    const known = isKnown ? cells[before]! : 0;
    cells[spent] = Math.min(cells[spent]! + known, MOST);
    cells[before] = -known;
    this.setGranted(period, 0);
    const alerted = stillAlerted(LAST_ALERT, known, this.#caps[period]);
    if (period === 'monthly') this.#monthlyAlerted = Math.max(this.#monthlyAlerted, alerted);
    else this.#dailyAlerted = Math.max(this.#dailyAlerted, alerted);
  }
}

// A cap of 0 counts as unused until the first micro-dollar is spent.
const hasReached = (percent: number, spentMicroUsd: number, limitMicroUsd: number): boolean =>
  spentMicroUsd > 0 && spentMicroUsd >= (limitMicroUsd * percent) / 100;

/**
 * The highest threshold that still counts as alerted. After the cap was raised, an alert becomes due again for the new
 * cap.
 */
const stillAlerted = (alertedPercent: number, spentMicroUsd: number, limitMicroUsd: number): number =>
  alertedPercent === 0 || hasReached(alertedPercent, spentMicroUsd, limitMicroUsd)
    ? alertedPercent
    : (ALERT_PERCENTS.findLast((percent) => hasReached(percent, spentMicroUsd, limitMicroUsd)) ?? 0);

const isAlertDue = (spentMicroUsd: number, limitMicroUsd: number, alertedPercent: number): boolean =>
  alertedPercent < LAST_ALERT &&
  hasReached(alertedPercent < FIRST_ALERT ? FIRST_ALERT : LAST_ALERT, spentMicroUsd, limitMicroUsd);

/** An agent's place in the tree, kept to save the search by its names. Opaque to its holder. */
export type BudgetHandle = Envelope;
