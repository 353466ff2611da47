/** What became of a transaction whose connection was lost between COMMIT and the answer to it. */
import { codeOf } from '../../core/error-text.ts';
import { assert } from '../../core/result.ts';
import type { Queryable } from './postgres.ts';

export type Verdict = 'committed' | 'aborted' | 'in progress';

/** Whatever the database has by default: who has waited for a lock must see what its holder has written. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';

/** Begins a transaction and resolves with its id. Asked for now: together with COMMIT, its answer would be lost with that to COMMIT. */
export async function begin(connection: Queryable): Promise<string> {
  const [, { rows: [row] }] = await Promise.all([
    connection.query(BEGIN),
    connection.query<{ id: string }>('SELECT pg_current_xact_id()::text AS id'),
  ]);
  assert(row !== undefined, 'a transaction has an id');
  return row.id;
}

/** A server that has never heard of the transaction, or has forgotten it as one of long ago, counts as not having committed it. */
export async function verdictOn(transactionId: string, database: Queryable): Promise<Verdict> {
  try {
    const { rows: [row] } = await database.query<{ status: Verdict | null }>('SELECT pg_xact_status($1::xid8) AS status', [transactionId]);
    return row?.status ?? 'aborted';
  } catch (error) {
    // So says one that crashed before the transaction was on its disk, or that took over before it had been sent there.
    if (codeOf(error) === ID_IN_THE_FUTURE) return 'aborted';
    throw error;
  }
}

/** `invalid_parameter_value`, which has no other reason here. */
const ID_IN_THE_FUTURE = '22023';
