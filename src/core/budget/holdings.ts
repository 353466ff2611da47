import type { AgentIdentity } from '../base/ids.ts';
import type { BudgetAlert } from './envelope.ts';
import type { AccountName, AccountRow, Grant } from './escrow.ts';
import type { BudgetGrants, BudgetShortage } from './grants.ts';
import type { RunningPeriods } from './running.ts';
import type { EnvelopeTree } from './tree.ts';

/** The accounts of the ledger of a cluster as this gateway holds them, for the exchanges with it. */
export class BudgetHoldings {
  readonly #grants: BudgetGrants;
  readonly #tree: EnvelopeTree;
  readonly #periods: RunningPeriods;
  readonly #advance: (nowMs: number) => void;

  /** `advance`: has periods and reservations end that are over by then. */
  constructor(grants: BudgetGrants, tree: EnvelopeTree, periods: RunningPeriods, advance: (nowMs: number) => void) {
    this.#grants = grants;
    this.#tree = tree;
    this.#periods = periods;
    this.#advance = advance;
  }

  /** Returns the rows to report to the ledger now: urgent ones, and with `all` those that are due otherwise. */
  dueRows(most: number, all: boolean, nowMs: number): readonly AccountRow[] {
    this.#advance(nowMs);
    return this.#grants.escrow.due(most, all, this.#periods, nowMs);
  }

  /** Whether a check waits for an exchange, or another gateway does. */
  get hasUrgentRows(): boolean {
    return this.#grants.escrow.isUrgent;
  }

  /** Has the ledger told everything again, or these accounts. */
  restateGrants(names?: readonly AccountName[]): void {
    this.#grants.escrow.restate(names);
  }

  /** Whether there is something left of that. */
  get hasUnstatedRows(): boolean {
    return this.#grants.escrow.isUnstated;
  }

  /** Has the ledger told soon what was spent, of so many accounts at most. */
  reportSoon(most: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#grants.escrow.report(most, this.#periods);
  }

  /** The same of this agent's accounts. */
  reportOf({ orgId, teamId, agentId }: AgentIdentity): void {
    this.#grants.reportOf(this.#tree.at([orgId, teamId, agentId], false), this.#periods.window);
  }

  /** Everything that is left to tell, when this run ends. */
  closingRows(nowMs: number): readonly AccountRow[] {
    this.#advance(nowMs);
    return this.#grants.escrow.closing(this.#periods, nowMs);
  }

  /** Takes what the ledger has answered to these rows. */
  takeGrants(rows: readonly AccountRow[], grants: readonly Grant[], nowMs: number): readonly BudgetAlert[] {
    this.#advance(nowMs);
    return this.#grants.grant(rows, grants, this.#periods, nowMs);
  }

  /** Another gateway needs these accounts. True where there is something to give back. */
  recall(names: readonly AccountName[]): boolean {
    return this.#grants.escrow.recall(names, this.#periods, this.#periods.timeMs);
  }

  /** Gives up grants that are not in use. */
  freezeGrants(nowMs: number): void {
    this.#advance(nowMs);
    this.#grants.escrow.freeze(this.#periods);
  }

  /** No check waits any more, until `needGrants` says so. */
  clearNeeds(): void {
    this.#grants.escrow.clearNeeds();
  }

  /** A check that waits got these and lacks others. */
  giveBackNeeds(shortages: readonly BudgetShortage[]): void {
    this.#grants.giveBackNeeds(shortages, this.#periods);
  }

  /** A check waits for as much. */
  needGrants(shortages: readonly BudgetShortage[], nowMs: number): void {
    this.#grants.need(shortages, this.#periods, nowMs);
  }

  /** A check has waited in vain: for a second, those that need as much are denied at once. */
  exhaustGrants(shortages: readonly BudgetShortage[], isUnconfirmed: boolean, nowMs: number): void {
    this.#grants.exhaust(shortages, this.#periods, nowMs, isUnconfirmed);
  }
}
