/** Finds out what became of a transaction whose connection was lost between COMMIT and its answer. */
import { randomUUID } from 'node:crypto';
import { codeOf } from '../../core/base/text.ts';
import type { Migration } from './migration.ts';
import type { Queryable } from './queryable.ts';

export type Verdict = 'committed' | 'aborted' | 'in progress';

/** Regardless of the database's default: whoever waited for a lock must see what its holder wrote. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';

/**
 * A transaction leaves a mark that nobody else can leave. Its own id would not do: after a crash the server gives ids
 * out again that were not on disk, and then says of somebody else's transaction that it has committed.
 */
export const MARK_MIGRATION: Migration = {
  number: 22,
  name: 'marks of transactions',
  sql: `
    CREATE TABLE commit_mark (nonce uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX commit_mark_by_age ON commit_mark (at);
  `,
  toleratedSince: 14,
};

/** Nobody asks about a transaction for so long. */
const OLD_MARKS = `DELETE FROM commit_mark WHERE nonce = ANY (ARRAY(
  SELECT nonce FROM commit_mark WHERE at < now() - interval '1 hour' ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED))`;
/** Every so many transactions, one removes old marks. */
const TIDY_EVERY = 500;
let begun = 0;

/** Begins a transaction and resolves with its mark. */
export async function begin(connection: Queryable): Promise<string> {
  const nonce = randomUUID();
  const started = [connection.query(BEGIN), connection.query('INSERT INTO commit_mark (nonce) VALUES ($1)', [nonce])];
  if (begun % TIDY_EVERY === 0) started.push(connection.query(OLD_MARKS));
  begun += 1;
  await Promise.all(started);
  return nonce;
}

/**
 * Tries to leave the mark itself: it cannot where the transaction has. While that one may still commit, the server has
 * this wait for it; and once it could, the other cannot commit any more.
 */
export async function verdictOn(nonce: string, database: Queryable): Promise<Verdict> {
  try {
    const sql = 'INSERT INTO commit_mark (nonce) VALUES ($1) ON CONFLICT DO NOTHING';
    const { rowCount } = await database.query(sql, [nonce]);
    return rowCount === 0 ? 'committed' : 'aborted';
  } catch (error) {
    if (GAVE_UP_WAITING.has(codeOf(error) ?? '')) return 'in progress';
    throw error;
  }
}

/** `lock_not_available` and `query_canceled`, after the time that a statement may take. */
const GAVE_UP_WAITING: ReadonlySet<string> = new Set(['55P03', '57014']);
