/** The money of a gateway in a cluster: what it has spent, and its trade with the ledger. */

import { ok } from '../core/base/result.ts';
import type { Effect } from '../core/effects.ts';
import type { Governor } from '../core/governor.ts';
import { orgInReach } from '../core/identity/access.ts';
import { Durations } from '../core/stats/durations.ts';
import type { Bus, Ledger, LedgerPages, RunId, UsageIds } from '../ports/cluster.ts';
import type { BudgetStore, Clock } from '../ports/ports.ts';
import type { SharedMoney } from '../ports/sharing.ts';
import { budgetsAndLimits } from './escrows.ts';
import { BudgetExchange } from './exchange.ts';
import { UsageClaims } from './usage-claims.ts';

export type MoneyStart = {
  /** The data directory's, with the spend of this run and of those before. */
  readonly kept: BudgetStore;
  /** Whether that directory is from an earlier run in a cluster, and how this run begins in it. */
  readonly runs: { readonly last: RunId | undefined; begin(run: RunId): Promise<void> };
  readonly ledger: Ledger;
  readonly pages: LedgerPages;
  readonly usageIds: UsageIds;
  /** For how long a grant is to last. */
  readonly sliceMs: number;
  /** Whether the database has not been reached for longer than a lease lasts. */
  readonly isCutOff: () => boolean;
  readonly run: RunId;
  readonly bus: Bus;
  readonly onError: (error: unknown, doing: string) => void;
};

export type Money = ReturnType<typeof openMoney>;

export function openMoney({ kept, runs, ledger, pages, usageIds, sliceMs, run, bus, isCutOff, onError }: MoneyStart) {
  let exchange: BudgetExchange | undefined;
  const durations = new Durations();
  const steadyMs = (): number => performance.now();
  const claims = new UsageClaims({ store: usageIds, isCutOff, steadyMs, onError });
  return {
    sliceMs,
    /** The spend of this run: what an earlier one has spent is settled when this one joins. */
    budgets: {
      save: (rows: Parameters<BudgetStore['save']>[0]) => kept.save(rows),
      *load() {
        // Spending from outside the cluster is reported as this gateway's own.
        for (const row of kept.load()) if (runs.last === undefined || row.kind !== 'spend') yield row;
      },
    },
    /** Has budgets and limits trade with the ledger, once the gateway has joined. Call it once. */
    tradeFor: (
      { budgets, limits }: Pick<Governor, 'budgets' | 'limits'>,
      clock: Clock,
      onAlerts: (alerts: readonly Effect[]) => void,
    ): SharedMoney => {
      const trade = new BudgetExchange({
        budgets: budgetsAndLimits(budgets.holdings, limits, (alerts) =>
          onAlerts(alerts.map((alert) => ({ kind: 'limit-alert', alert }))),
        ),
        ledger,
        bus,
        nowMs: () => clock.nowMs(),
        steadyMs,
        onAlerts: (alerts) => onAlerts(alerts.map((alert) => ({ kind: 'budget-alert', alert }))),
        onExchanged: (ms) => durations.add(ms),
        onError,
      });
      exchange = trade;
      return {
        park: (check, short, retry) => trade.park(check, short, retry),
        claim: (key) => claims.claim(key),
        settle: (key) => claims.settle(key),
        report: (agent) => trade.reportOf(agent),
        listBudgets: async (command) => {
          const org = orgInReach(command.principal, command.orgId);
          if (!org.ok) return org;
          await trade.report();
          const periods = budgets.periodNames(clock.nowMs());
          const { cursor: after, perPage: limit } = command;
          const page = await pages.page({ periods, orgId: org.value, after, limit });
          if (!page.ok) return page;
          const { items, next } = page.value;
          return ok({
            items: items.map(({ owner, spentMicroUsd }) => budgets.sharedStatus(owner, spentMicroUsd)),
            next,
          });
        },
      };
    },
    /** After caps were lowered: resolves when the ledger has what is not in use here, or cannot be asked. */
    giveBack: async () => exchange?.flush(),
    /** Checks that wait for the ledger, and how long it takes to answer. */
    measured: () => ({ parked: exchange?.parked ?? 0, exchanges: durations.totals }),
    /** Call it when the gateway has joined. */
    start: async () => {
      await runs.begin(run);
      exchange?.start();
    },
    /** Reports what was spent, and returns the rest. False where that failed. */
    close: async (): Promise<boolean> => {
      claims.stop();
      return (await exchange?.close()) ?? true;
    },
  };
}
