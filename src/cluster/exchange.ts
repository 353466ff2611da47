import type { AgentIdentity } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { BudgetAlert } from '../core/budget/envelope.ts';
import type { AccountName, AccountRow, Grant } from '../core/budget/escrow.ts';
import type { Fault } from '../core/fault.ts';
import { isOfLimits } from '../core/limits/grants.ts';
import { accountOf, type Shortage } from '../core/limits/shortage.ts';
import type { Bus, Ledger } from '../ports/cluster.ts';
import { within } from '../system/clock.ts';
import type { Holdings } from './escrows.ts';

export type BudgetExchangeOptions = {
  readonly budgets: Holdings;
  readonly ledger: Ledger;
  readonly bus: Bus;
  /** As for `BudgetTracker`. */
  readonly nowMs: () => number;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
  readonly onAlerts: (alerts: readonly BudgetAlert[]) => void;
  /** How long the ledger took to answer, or to fail. */
  readonly onExchanged?: (ms: number) => void;
  readonly onError: (error: unknown, doing: string) => void;
};

const EXCHANGE_EVERY_MS = 1_000;
/** Rows of one exchange: 500 take the database 9 ms. */
const MOST_ROWS = 500;
/** How long a check waits for the ledger, and for what other gateways give back. */
const WAIT_MS = 250;
const MAX_PARKED = 10_000;
/** Recalled money is back in the ledger by then, if it was idle. */
const RECALL_MS = 15;
const RETRY_MS = 50;
/**
 * Without the ledger for so long, nothing is admitted against a cap: a gateway that was replaced or forgotten without
 * knowing has stopped before its money is freed.
 */
const FREEZE_AFTER_MS = 5 * 60_000;

type Parked = { readonly check: object; readonly short: readonly Shortage[]; readonly retry: () => void };

/** Names an account in the running period: see `accountOf`. */
const keyOfRow = ({ owner, period }: AccountName): string => `${owner} ${period[0]}`;

/**
 * Limits of which more was used than there is, while others hold some. It cannot be left to them: tokens are recorded
 * after the check that they were used for, so that one whose grant has a token left would be allowed on and on.
 */
function overspent(rows: readonly AccountRow[], grants: readonly Grant[]): readonly AccountName[] {
  const ofLimits = rows.filter(isOfLimits);
  if (ofLimits.length === 0) return [];
  const answers = new Map(grants.map((grant) => [keyOfRow(grant), grant]));
  return ofLimits.filter((row) => {
    const { spentByAllMicroUsd = 0, heldByAllMicroUsd = 0 } = answers.get(keyOfRow(row)) ?? {};
    return heldByAllMicroUsd > 0 && spentByAllMicroUsd + heldByAllMicroUsd > row.capMicroUsd;
  });
}

const isGlobal = ({ owner }: AccountRow): boolean => owner === 'global';

/** Trades with the ledger of the cluster: every second what is due, and at once what checks wait for. */
export class BudgetExchange {
  readonly #options: BudgetExchangeOptions;
  #parked: Parked[] = [];
  /** Until when each waiting check waits. */
  readonly #deadlines = new WeakMap<object, number>();
  /** Looks at the deadline of the check that waits longest, whatever the database does meanwhile. */
  #expiring: NodeJS.Timeout | undefined;
  /** Accounts that were refused something lately, by `accountOf`, with the names that the ledger has for them. */
  readonly #refused = new Map<string, AccountRow>();
  /** How often others were asked since checks began to wait. */
  #recalls = 0;
  #sequence = 0;
  #failures = 0;
  /** The server that has been told everything. */
  #server: string | undefined;
  #isStating = false;
  /** By each of the clocks: one that nobody sets may stand still while the machine is suspended. */
  #reachedAt: { readonly steadyMs: number; readonly nowMs: number };
  #isUnreachable = false;
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();
  #isDue = false;
  #isClosed = false;
  #ticking: NodeJS.Timeout | undefined;
  #exchanging: Promise<unknown> = Promise.resolve();

  constructor(options: BudgetExchangeOptions) {
    this.#options = options;
    this.#reachedAt = { steadyMs: options.steadyMs(), nowMs: options.nowMs() };
    options.bus.onMessage((_, message) => {
      if (message.type === 'recall') this.#recall(message.accounts);
    });
  }

  /** How many checks wait for the ledger. */
  get parked(): number {
    return this.#parked.length;
  }

  start(): void {
    this.#ticking = setInterval(() => this.#tick(), EXCHANGE_EVERY_MS);
    void this.#state();
  }

  /**
   * Reports everything that was spent, and keeps nothing. What still waits is decided by what there is. False: the
   * ledger could not be told all of it, so this run must be settled by the next start.
   */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    clearInterval(this.#ticking);
    clearTimeout(this.#expiring);
    this.#retryAll();
    await this.#exchanging;
    const { budgets, nowMs } = this.#options;
    const rows = budgets.closingRows(nowMs());
    for (let at = 0; at < rows.length; at += MOST_ROWS)
      if (!(await this.#exchange(rows.slice(at, at + MOST_ROWS)))) return false;
    return true;
  }

  /** False: too many wait already. A check that has waited for its time is decided by what is known then. */
  park(check: object, short: readonly Shortage[], retry: () => void): boolean {
    const { budgets, nowMs, steadyMs } = this.#options;
    const deadline = this.#deadlines.get(check) ?? steadyMs() + WAIT_MS;
    if (this.#isClosed || steadyMs() >= deadline) {
      budgets.exhaustGrants(short, this.#isUnreachable || this.#isClosed, nowMs());
      retry();
      return true;
    }
    if (this.#parked.length >= MAX_PARKED) return false;
    this.#deadlines.set(check, deadline);
    this.#parked.push({ check, short, retry });
    budgets.needGrants(short, nowMs());
    this.#expireAt(deadline);
    void this.#run();
    return true;
  }

  #expireAt(deadline: number): void {
    this.#expiring ??= setTimeout(
      () => {
        this.#expiring = undefined;
        this.#expire();
      },
      Math.max(0, deadline - this.#options.steadyMs()),
    );
  }

  /** Checks that have waited for their time are decided, though the ledger may not have answered. */
  #expire(): void {
    const nowMs = this.#options.steadyMs();
    const deadlineOf = ({ check }: Parked): number => this.#deadlines.get(check) ?? 0;
    const late = this.#parked.filter((each) => nowMs >= deadlineOf(each));
    this.#parked = this.#parked.filter((each) => !late.includes(each));
    for (const { retry } of late) retry();
    const next = Math.min(...this.#parked.map(deadlineOf));
    if (Number.isFinite(next)) this.#expireAt(next);
  }

  #tick(): void {
    const { budgets, nowMs, steadyMs } = this.#options;
    const unreachedMs = Math.max(steadyMs() - this.#reachedAt.steadyMs, nowMs() - this.#reachedAt.nowMs);
    if (unreachedMs > FREEZE_AFTER_MS) budgets.freezeGrants(nowMs());
    this.#isDue = true;
    void this.#run();
    void this.#state();
  }

  /** Tells everything again to a server that may have forgotten it. Never rejects. */
  async #state(): Promise<void> {
    if (this.#isStating) return;
    this.#isStating = true;
    try {
      await this.#stateTo(await this.#options.ledger.server());
    } catch (error) {
      this.#options.onError(error, 'telling the ledger what this gateway holds');
    } finally {
      this.#isStating = false;
    }
  }

  async #stateTo(server: Result<string, Fault>): Promise<void> {
    const { budgets, ledger } = this.#options;
    if (!server.ok || server.value === this.#server) return;
    const failures = this.#failures;
    budgets.restateGrants();
    await this.flush();
    if (this.#isClosed || budgets.hasUnstatedRows || failures !== this.#failures) return; // the next tick begins anew
    const stated = await ledger.stated(server.value);
    if (stated.ok) this.#server = server.value;
  }

  #recall(accounts: readonly string[]): void {
    const names = accounts.flatMap((owner, at) =>
      at % 2 === 0 && accounts[at + 1] !== undefined ? [{ owner, period: accounts[at + 1]! }] : [],
    );
    const { budgets, nowMs } = this.#options;
    if (budgets.recall(names, nowMs())) void this.#run();
  }

  /**
   * Tells the ledger what was spent and what is no longer kept, as far as one exchange goes. Resolves when it knows, or
   * could not be asked.
   */
  async report(): Promise<void> {
    const { budgets, nowMs } = this.#options;
    budgets.reportSoon(MOST_ROWS, nowMs());
    await this.flush();
  }

  /** The same of what this agent has spent. Resolves also when the time is over that a check would wait. */
  async reportOf(agent: AgentIdentity): Promise<void> {
    this.#options.budgets.reportOf(agent);
    await within(WAIT_MS, this.flush());
  }

  /** Resolves when the ledger has been told what must not wait, or could not be asked. */
  async flush(): Promise<void> {
    const { budgets } = this.#options;
    if (!budgets.hasUrgentRows) return;
    await this.#running; // an exchange under way knows nothing of it
    if (budgets.hasUrgentRows) await this.#run();
  }

  /** Runs one exchange after the other, as long as something is due. */
  #run(): Promise<void> {
    if (!this.#isRunning) this.#running = this.#runOn();
    return this.#running;
  }

  async #runOn(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let pause = 0; !this.#isClosed && pause !== undefined; ) {
        if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
        const next = this.#step();
        this.#exchanging = next;
        const after = await next;
        if (after === undefined) break;
        pause = after;
      }
    } catch (error) {
      this.#options.onError(error, 'exchanging budgets with the ledger');
      this.#retryAll();
    } finally {
      this.#isRunning = false;
    }
  }

  /** Answers how long to pause before the next step; undefined: nothing is due. */
  async #step(): Promise<number | undefined> {
    const { budgets, nowMs } = this.#options;
    const isAll = this.#isDue;
    this.#isDue = false;
    budgets.clearNeeds();
    for (const { short } of this.#parked) budgets.needGrants(short, nowMs());
    const asking = [...this.#parked];
    const rows = budgets.dueRows(MOST_ROWS, isAll, nowMs());
    if (rows.length === 0) return this.#parked.length === 0 ? undefined : this.#afterRefusals(asking);
    this.#refused.clear();
    // The rows that all gateways want come last, so that nobody waits for them while it holds others.
    const isReached =
      (await this.#exchange(rows.filter((row) => !isGlobal(row)))) &&
      (await this.#exchange(this.#unblocked(asking, rows.filter(isGlobal))));
    // Money recalled or reported meanwhile is waited for as well.
    if (this.#parked.length === 0)
      return isReached && (rows.length === MOST_ROWS || budgets.hasUrgentRows) ? 0 : undefined;
    return isReached ? this.#afterRefusals(asking) : RETRY_MS;
  }

  /** A check that was refused a narrower account needs nothing of the wider ones: others may. */
  #unblocked(asking: readonly Parked[], rows: readonly AccountRow[]): readonly AccountRow[] {
    if (this.#refused.size === 0) return rows;
    const able = asking.filter(({ short }) => !short.some((each) => this.#refused.has(accountOf(each))));
    return rows.map((row) => {
      if (row.neededMicroUsd === 0) return row;
      const key = keyOfRow(row);
      const lacks = able.flatMap(({ short }) => short.filter((each) => accountOf(each) === key))[0]?.lacksMicroUsd ?? 0;
      const isOver = Math.max(0, row.spentMicroUsd - row.keptMicroUsd);
      const neededMicroUsd = Math.max(0, lacks - isOver);
      return { ...row, neededMicroUsd, wantedMicroUsd: neededMicroUsd };
    });
  }

  /** Has the waiting checks decided anew; asks the others for what is still refused. */
  async #afterRefusals(asked: readonly Parked[]): Promise<number | undefined> {
    this.#retryAll();
    if (this.#parked.length === 0) this.#recalls = 0;
    if (this.#parked.length === 0) return undefined;
    if (this.#refused.size === 0) return 0;
    if (this.#giveBackParts(asked)) {
      this.#options.budgets.clearNeeds();
      await this.#exchange(this.#options.budgets.dueRows(MOST_ROWS, false, this.#options.nowMs()));
    }
    this.#recallFromOthers([...this.#refused.values()]);
    this.#recalls += 1;
    return this.#recalls === 1 ? RECALL_MS : RETRY_MS;
  }

  #recallFromOthers(names: readonly AccountName[]): void {
    const accounts = names.flatMap(({ owner, period }) => [owner, period]);
    if (accounts.length > 0) this.#options.bus.send('all', { type: 'recall', accounts });
  }

  /**
   * A check that got some of what it needs and was refused the rest gives it back before it is tried again: two that
   * each hold what the other lacks would both be denied.
   */
  #giveBackParts(asked: readonly Parked[]): boolean {
    let isAny = false;
    const before = new Map(asked.map((each) => [each.check, each.short]));
    this.#parked = this.#parked.map((each) => {
      const short = before.get(each.check) ?? each.short;
      if (!short.some((part) => this.#refused.has(accountOf(part)))) return each;
      const got = short.filter((part) => !each.short.some((lacking) => accountOf(lacking) === accountOf(part)));
      if (got.length === 0) return each;
      this.#options.budgets.giveBackNeeds(got, this.#options.nowMs());
      isAny = true;
      return { ...each, short };
    });
    return isAny;
  }

  #retryAll(): void {
    for (const { retry } of this.#parked.splice(0)) retry();
  }

  /** False where the ledger could not be asked. */
  async #exchange(rows: readonly AccountRow[]): Promise<boolean> {
    if (rows.length === 0) return true;
    const { budgets, ledger, nowMs, onAlerts, onExchanged, steadyMs } = this.#options;
    this.#sequence += 1;
    const sequence = this.#sequence;
    const sentAt = { steadyMs: steadyMs(), nowMs: nowMs() };
    const answered = await ledger.exchange(sequence, rows);
    onExchanged?.(steadyMs() - sentAt.steadyMs);
    // Only the answer to the latest is taken: an earlier one does not know what was lowered since.
    this.#isUnreachable = !answered.ok;
    if (!answered.ok || answered.value === undefined || sequence !== this.#sequence) {
      this.#failures += 1;
      budgets.restateGrants(rows); // the ledger may have granted what is not known here
      return false;
    }
    this.#reachedAt = sentAt;
    const alerts = budgets.takeGrants(rows, answered.value, nowMs());
    if (alerts.length > 0) onAlerts(alerts);
    this.#recallFromOthers(overspent(rows, answered.value));
    const granted = new Map(answered.value.map((grant) => [`${grant.owner} ${grant.period}`, grant.grantedMicroUsd]));
    for (const row of rows) {
      const { owner, period, keptMicroUsd, neededMicroUsd } = row;
      if (neededMicroUsd > 0 && (granted.get(`${owner} ${period}`) ?? 0) < keptMicroUsd + neededMicroUsd)
        this.#refused.set(keyOfRow(row), row);
    }
    return true;
  }
}
