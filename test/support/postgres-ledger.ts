/** The ledger in a real database, and rows of reports to it. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { AccountRow } from '../../src/core/budget/escrow.ts';
import type { RunId } from '../../src/ports/cluster.ts';
import { createPostgresLedger } from '../../src/stores/postgres/cluster/ledger.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import { SILENT } from './database-server.ts';

const HOUR_MS = 3_600_000;
export const PERIOD = 'd:2026-11-25';

/** Opens the ledger in a new database, for runs that join it. */
export async function openPostgresLedger(newDatabase: () => Promise<string>) {
  const url = await newDatabase();
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  await postgres.start();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const join = async (name: string): Promise<RunId> => {
    const run = randomUUID() as string as RunId;
    await client.query(`SELECT cluster_join($1, $2, 60000, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')`, [
      run,
      name,
    ]);
    return run;
  };
  const ledgerOf = (run: RunId) => createPostgresLedger({ postgres, run, leaseMs: 60_000, policyVersion: () => 'v1' });
  return { client, join, ledgerOf, postgres };
}

export const rowOf = (owner: string, more: Partial<AccountRow>): AccountRow => ({
  owner,
  period: PERIOD,
  fromMs: Date.now() - HOUR_MS,
  toMs: Date.now() + HOUR_MS,
  capMicroUsd: 1_000,
  keptMicroUsd: 0,
  spentMicroUsd: 0,
  neededMicroUsd: 0,
  wantedMicroUsd: 0,
  ...more,
});

export const byOwner = <T extends { readonly owner: string }>(rows: readonly T[]): readonly T[] =>
  rows.toSorted((one, other) => (one.owner < other.owner ? -1 : 1));
