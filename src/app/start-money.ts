/** The money of a gateway in a cluster: what it has spent, and its trade with the ledger. */
import { BudgetExchange } from '../cluster/exchange.ts';
import { LEASE_MS } from '../cluster/membership.ts';
import { UsageClaims } from '../cluster/usage-claims.ts';
import type { Config } from '../config/config.ts';
import { orgInReach } from '../core/access.ts';
import { ok } from '../core/base/result.ts';
import type { BudgetTracker } from '../core/budget/budget.ts';
import type { BudgetAlert } from '../core/budget/envelope.ts';
import { ownerOf } from '../core/budget/grants.ts';
import type { Bus, RunId } from '../ports/cluster.ts';
import type { BudgetStore, Clock } from '../ports/ports.ts';
import { createEmbeddedBudgets } from '../stores/embedded/budgets.ts';
import { readStoredRuns } from '../stores/embedded/runs.ts';
import type { EmbeddedStore } from '../stores/embedded/store.ts';
import { createPostgresLedger } from '../stores/postgres/cluster/ledger.ts';
import { createPostgresLedgerPages } from '../stores/postgres/cluster/ledger-pages.ts';
import type { Settlement } from '../stores/postgres/cluster/members.ts';
import { createPostgresUsageIds } from '../stores/postgres/cluster/usage-ids.ts';
import type { Postgres } from '../stores/postgres/postgres.ts';
import { type DurationCounts, Durations } from '../threads/durations.ts';
import type { SharedMoney } from '../threads/main/command-runner.ts';

export type MoneyStart = {
  readonly config: Config;
  readonly store: EmbeddedStore;
  /** With a single connection, for exchanges. */
  readonly postgres: Postgres;
  /** For all else. */
  readonly pool: Postgres;
  /** Whether the database has not been reached for longer than a lease lasts. */
  readonly isCutOff: () => boolean;
  readonly run: RunId;
  readonly bus: Bus;
  readonly policyVersion: () => string;
  readonly onError: (error: unknown, doing: string) => void;
};

export type Money = {
  /** The spend of this run: what an earlier one has spent is settled when this one joins. */
  readonly budgets: BudgetStore;
  /** For how long a grant is to last. */
  readonly sliceMs: number;
  /** Has these budgets trade with the ledger, once the gateway has joined. Call it once. */
  tradeFor(budgets: BudgetTracker, clock: Clock, onAlerts: (alerts: readonly BudgetAlert[]) => void): SharedMoney;
  /** After caps were lowered: resolves when the ledger has what is not in use here, or cannot be asked. */
  giveBack(): Promise<void>;
  /** Checks that wait for the ledger, and how long it takes to answer. */
  measured(): { readonly parked: number; readonly exchanges: DurationCounts };
  /** Call it when the gateway has joined. */
  start(): Promise<void>;
  /** Reports what was spent, and returns the rest. False where that failed. */
  close(): Promise<boolean>;
};

export function openMoney({
  config,
  store,
  postgres,
  pool,
  run,
  bus,
  policyVersion,
  isCutOff,
  onError,
}: MoneyStart): Money {
  const runs = readStoredRuns<RunId>(store);
  const { load, save } = createEmbeddedBudgets(store);
  let exchange: BudgetExchange | undefined;
  const durations = new Durations();
  const steadyMs = (): number => performance.now();
  const claims = new UsageClaims({ store: createPostgresUsageIds(pool, run), isCutOff, steadyMs, onError });
  const pages = createPostgresLedgerPages(pool);
  return {
    sliceMs: config.SVC_CLUSTER_SLICE_SECS * 1_000,
    budgets: {
      save,
      *load() {
        // Spending from outside the cluster is reported as this gateway's own.
        for (const row of load()) if (runs.last === undefined || row.kind !== 'spend') yield row;
      },
    },
    tradeFor: (budgets, clock, onAlerts) => {
      const trade = new BudgetExchange({
        budgets,
        ledger: createPostgresLedger({ postgres, run, leaseMs: LEASE_MS, policyVersion }),
        bus,
        nowMs: () => clock.nowMs(),
        steadyMs,
        onAlerts,
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
    giveBack: async () => exchange?.flush(),
    measured: () => ({ parked: exchange?.parked ?? 0, exchanges: durations.totals }),
    start: async () => {
      await runs.begin(run);
      exchange?.start();
    },
    close: async () => {
      claims.stop();
      return (await exchange?.close()) ?? true;
    },
  };
}

/** Returns the spending of the last run on this data directory, by owner and period. */
export function settlementIn(store: EmbeddedStore): Settlement | undefined {
  const { last, spend } = readStoredRuns<RunId>(store);
  if (last === undefined) return undefined;
  const accounts = spend.flatMap((row) => [
    { owner: ownerOf(row), period: `m:${row.monthly.name}`, spentMicroUsd: row.monthly.spentMicroUsd },
    { owner: ownerOf(row), period: `d:${row.daily.name}`, spentMicroUsd: row.daily.spentMicroUsd },
  ]);
  return {
    run: last,
    owners: accounts.map(({ owner }) => owner),
    periods: accounts.map(({ period }) => period),
    spentMicroUsd: accounts.map(({ spentMicroUsd }) => spentMicroUsd),
  };
}
