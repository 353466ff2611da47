import type { AlertPercent } from '../../../core/budget/envelope.ts';
import type { AccountRow, Grant } from '../../../core/budget/escrow.ts';
import { RESERVATION_TTL_MS } from '../../../core/budget/reservations.ts';
import type { Ledger, RunId } from '../../../ports/cluster.ts';
import { dateOf } from '../account-rows.ts';
import type { Postgres } from '../postgres.ts';
import { attemptAsRun } from './as-run.ts';

export type LedgerOptions = {
  /** With a single connection: an exchange waits for nothing but the ledger. */
  readonly postgres: Postgres;
  readonly run: RunId;
  readonly leaseMs: number;
  readonly policyVersion: () => string;
};

type GrantRow = {
  readonly owner: string;
  readonly period: string;
  readonly granted: string;
  readonly spent_all: string;
  readonly out_all: string;
  readonly alert: AlertPercent | null;
  readonly raised: string;
  readonly raised_at: string;
  readonly over: boolean;
};

/** Stands for a cap that there is not. */
const capOf = ({ capMicroUsd }: AccountRow): number => Math.min(capMicroUsd, Number.MAX_SAFE_INTEGER);

const grantOf = (row: GrantRow): Grant => ({
  owner: row.owner,
  period: row.period,
  grantedMicroUsd: Number(row.granted),
  spentByAllMicroUsd: Number(row.spent_all),
  heldByAllMicroUsd: Number(row.out_all),
  alertPercent: row.alert ?? undefined,
  raised: row.raised_at === '0' ? undefined : { amount: Number(row.raised), atMs: Number(row.raised_at) },
  isOver: row.over,
});

export function createPostgresLedger({ postgres, run, leaseMs, policyVersion }: LedgerOptions): Ledger {
  return {
    exchange: (sequence, rows) =>
      attemptAsRun(postgres, async (on) => {
        const { rows: granted } = await on.query<GrantRow>(
          'SELECT * FROM budget_exchange($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)',
          [
            run,
            sequence,
            leaseMs,
            policyVersion(),
            RESERVATION_TTL_MS,
            rows.map(({ owner }) => owner),
            rows.map(({ period }) => period),
            rows.map(({ fromMs }) => dateOf(fromMs)),
            rows.map(({ toMs }) => dateOf(toMs)),
            rows.map(capOf),
            rows.map(({ keptMicroUsd }) => keptMicroUsd),
            rows.map(({ spentMicroUsd }) => spentMicroUsd),
            rows.map(({ neededMicroUsd }) => neededMicroUsd),
            rows.map(({ wantedMicroUsd }) => wantedMicroUsd),
            rows.map(({ raised }) => raised?.amount ?? 0),
            rows.map(({ raised }) => raised?.atMs ?? 0),
          ],
        );
        return granted.length === 0 ? undefined : granted.map(grantOf);
      }),
    server: () =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ server: string }>('SELECT pg_postmaster_start_time()::text AS server');
        return rows[0]!.server;
      }),
    stated: (server) =>
      attemptAsRun(postgres, async (on) => void (await on.query('SELECT cluster_stated($1, $2)', [run, server]))),
  };
}
