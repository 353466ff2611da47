/** Brings the schema up to date. Any number of gateways may do so at once: each step is applied once. */
import type pg from 'pg';
import { BEGIN } from './commit-verdict.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';

/** Any number will do, as long as every gateway uses the same one and nobody else does. */
const MIGRATION_LOCK = 7_201_554_310;

/** Waiting for another gateway's migration takes as long as that migration does. */
const MIGRATION_TIMEOUT_MS = 120_000;

/** The database cannot be used, and waiting will not help: it is newer than this gateway, or refuses a step. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

/**
 * Applies all steps in one transaction under an advisory lock; PostgreSQL undoes all of them when one fails. Rejects
 * with the driver's error when the connection fails.
 */
export async function migrate(
  client: pg.ClientBase,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly number[]> {
  await client.query(BEGIN);
  try {
    await client.query(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}; SET LOCAL lock_timeout = 0`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    // Asked first: `IF NOT EXISTS` needs the right to create even where the table exists, and a role for rows alone
    // lacks it.
    const {
      rows: [found],
    } = await client.query<{ isThere: boolean }>(`SELECT to_regclass('svc_migrations') IS NOT NULL AS "isThere"`);
    if (found?.isThere !== true) {
      await client.query(
        'CREATE TABLE svc_migrations (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
      );
    }
    const { rows } = await client.query<{ number: number }>('SELECT number FROM svc_migrations');
    const applied = new Set(rows.map((row) => row.number));
    const newest = Math.max(0, ...migrations.map((migration) => migration.number));
    const unknown = [...applied].filter((number) => number > newest);
    if (unknown.length > 0) {
      throw new MigrationError(
        `the database has migration ${Math.max(...unknown)}, but this gateway knows only ${newest}; run a newer gateway`,
      );
    }
    const missing = migrations.filter((migration) => !applied.has(migration.number));
    for (const migration of missing) await apply(client, migration);
    await client.query('COMMIT');
    return missing.map((migration) => migration.number);
  } catch (error) {
    // The cause is the first error; on a broken connection there is nothing left to roll back.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function apply(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query(migration.sql);
  await client.query('INSERT INTO svc_migrations (number, name) VALUES ($1, $2)', [migration.number, migration.name]);
}
