import type { AgentIdentity } from '../core/base/ids.ts';
import type { BudgetAlert } from '../core/budget/envelope.ts';
import type { AccountName, AccountRow, Grant } from '../core/budget/escrow.ts';
import type { BudgetShortage } from '../core/budget/grants.ts';
import type { BudgetHoldings } from '../core/budget/holdings.ts';
import type { LimitShortage } from '../core/limits/grants.ts';
import type { LimitTracker } from '../core/limits/limits.ts';
import type { LimitAlert } from '../core/limits/reached.ts';
import type { Shortage } from '../core/limits/shortage.ts';

/** Accounts of the ledger as a gateway holds them: see `BudgetHoldings` and `Escrow` for each of these. */
export interface Holdings {
  readonly hasUrgentRows: boolean;
  readonly hasUnstatedRows: boolean;
  dueRows(most: number, all: boolean, nowMs: number): readonly AccountRow[];
  closingRows(nowMs: number): readonly AccountRow[];
  takeGrants(rows: readonly AccountRow[], grants: readonly Grant[], nowMs: number): readonly BudgetAlert[];
  restateGrants(names?: readonly AccountName[]): void;
  reportSoon(most: number, nowMs: number): void;
  reportOf(agent: AgentIdentity): void;
  recall(names: readonly AccountName[], nowMs: number): boolean;
  freezeGrants(nowMs: number): void;
  clearNeeds(): void;
  needGrants(short: readonly Shortage[], nowMs: number): void;
  giveBackNeeds(short: readonly Shortage[], nowMs: number): void;
  exhaustGrants(short: readonly Shortage[], isUnreachable: boolean, nowMs: number): void;
}

const ofBudgets = (short: readonly Shortage[]): readonly BudgetShortage[] =>
  short.filter((each): each is BudgetShortage => 'envelope' in each);
const ofLimits = (short: readonly Shortage[]): readonly LimitShortage[] =>
  short.filter((each): each is LimitShortage => 'limited' in each);

/** Budgets and limits, in the same exchanges. */
export function budgetsAndLimits(
  budgets: BudgetHoldings,
  limits: LimitTracker,
  onLimitAlerts: (alerts: readonly LimitAlert[]) => void,
): Holdings {
  const { grants } = limits;
  if (grants === undefined) return budgets;
  return {
    get hasUrgentRows() {
      return budgets.hasUrgentRows || grants.isUrgent;
    },
    get hasUnstatedRows() {
      return budgets.hasUnstatedRows || grants.isUnstated;
    },
    dueRows: (most, all, nowMs) => {
      const rows = budgets.dueRows(most, all, nowMs);
      return [...rows, ...grants.due(most - rows.length, all, nowMs)];
    },
    closingRows: (nowMs) => [...budgets.closingRows(nowMs), ...grants.closing(nowMs, nowMs)],
    takeGrants: (rows, granted, nowMs) => {
      const alerts = limits.takeGrants(rows, granted, nowMs);
      if (alerts.length > 0) onLimitAlerts(alerts);
      return budgets.takeGrants(rows, granted, nowMs);
    },
    restateGrants: (names) => {
      budgets.restateGrants(names);
      grants.restate(names);
    },
    // Nobody lists the limits of all gateways.
    reportSoon: (most, nowMs) => budgets.reportSoon(most, nowMs),
    reportOf: (agent) => budgets.reportOf(agent),
    recall: (names, nowMs) => {
      const isOfLimits = grants.recall(names, nowMs, nowMs);
      return budgets.recall(names) || isOfLimits;
    },
    freezeGrants: (nowMs) => {
      budgets.freezeGrants(nowMs);
      grants.freeze(nowMs);
    },
    clearNeeds: () => {
      budgets.clearNeeds();
      grants.clearNeeds();
    },
    needGrants: (short, nowMs) => {
      budgets.needGrants(ofBudgets(short), nowMs);
      for (const { limited, lacksMicroUsd } of ofLimits(short)) grants.need(limited, lacksMicroUsd, nowMs);
    },
    giveBackNeeds: (short, nowMs) => {
      budgets.giveBackNeeds(ofBudgets(short));
      for (const { limited, lacksMicroUsd } of ofLimits(short)) grants.giveBackNeed(limited, lacksMicroUsd, nowMs);
    },
    exhaustGrants: (short, isUnreachable, nowMs) => {
      budgets.exhaustGrants(ofBudgets(short), isUnreachable, nowMs);
      for (const { limited, lacksMicroUsd } of ofLimits(short))
        grants.exhaust(limited, lacksMicroUsd, nowMs, isUnreachable);
    },
  };
}
