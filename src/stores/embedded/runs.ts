import type { AgentRegistration } from '../../core/agents/agents.ts';
import { agentKeyOf } from '../../core/base/ids.ts';
import { ownerOf } from '../../core/budget/grants.ts';
import type { BudgetRow, SpendRow } from '../../core/budget/rows.ts';
import type { RunId } from '../../ports/cluster.ts';
import type { Settlement } from '../postgres/cluster/members.ts';
import { type EmbeddedStore, storedKey } from './store.ts';

/** Which run of a gateway in a cluster the spend in this store is of. */
export type StoredRuns<Run extends string> = {
  /** Undefined: the gateway was alone. */
  readonly last: Run | undefined;
  /** The spending of that run: a row is saved before its spend is answered. */
  readonly spend: readonly SpendRow[];
  /** From here on the spend in this store is of this run. The spend of another run is settled, and leaves it. */
  begin(run: Run): Promise<void>;
};

/** Whether a gateway on this store is one of a cluster: what it has of its own is from before it joined. */
export function isOfCluster(store: Pick<EmbeddedStore, 'table'>): boolean {
  const marks = store.table<string>('cluster');
  const last = marks.get('run');
  return last !== undefined && marks.get('left') !== last;
}

/** The rows that a gateway takes along when it leaves its cluster. */
export type Luggage = {
  readonly agents: readonly AgentRegistration[];
  readonly halts: readonly StoredState[];
  readonly approvals: readonly StoredState[];
};
type StoredState = { readonly id: string; readonly row: unknown };

/**
 * Puts it in the place of what the store had from before the cluster, all of it or nothing. Its last run stays known,
 * so that what that has spent is not brought into a cluster once more.
 */
export function leaveCluster(store: EmbeddedStore, { agents, halts, approvals }: Luggage): Promise<void> {
  const marks = store.table<string>('cluster');
  const tables = {
    agents: store.table<AgentRegistration>('agents'),
    halts: store.table<StoredState>('halts'),
    approvals: store.table<StoredState>('approvals'),
  };
  return store.transaction((inside) => {
    for (const table of Object.values(tables)) for (const [key] of table.entries()) inside<unknown>(table).remove(key);
    for (const agent of agents) inside(tables.agents).put(storedKey(agentKeyOf(agent.identity)), agent);
    for (const halt of halts) inside(tables.halts).put(storedKey(halt.id), halt);
    for (const approval of approvals) inside(tables.approvals).put(storedKey(approval.id), approval);
    const last = marks.get('run');
    if (last !== undefined) inside(marks).put('left', last);
  });
}

export function readStoredRuns<Run extends string>(store: EmbeddedStore): StoredRuns<Run> {
  const runs = store.table<Run>('cluster');
  const budgets = store.table<BudgetRow>('budgets');
  const last = runs.get('run');
  const rows = [...budgets.entries()].filter((entry): entry is [string, SpendRow] => entry[1].kind === 'spend');
  return {
    last,
    spend: rows.map(([, row]) => row),
    begin: (run) =>
      store.transaction((inside) => {
        inside(runs).put('run', run);
        if (last !== undefined) for (const [key] of rows) inside(budgets).remove(key);
      }),
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
