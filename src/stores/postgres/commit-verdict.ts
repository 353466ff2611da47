/** Finds out what became of a transaction whose connection was lost between COMMIT and its answer. */

import { assert } from '../../core/base/result.ts';
import { codeOf } from '../../core/base/text.ts';
import type { Queryable } from './queryable.ts';

export type Verdict = 'committed' | 'aborted' | 'in progress';

/** Regardless of the database's default: whoever waited for a lock must see what its holder wrote. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';

/**
 * Begins a transaction and resolves with its id. The id is requested now, because an answer sent with COMMIT's would be
 * lost with it.
 */
export async function begin(connection: Queryable): Promise<string> {
  const [
    ,
    {
      rows: [row],
    },
  ] = await Promise.all([
    connection.query(BEGIN),
    connection.query<{ id: string }>('SELECT pg_current_xact_id()::text AS id'),
  ]);
  assert(row !== undefined, 'a transaction has an id');
  return row.id;
}

/**
 * A server that has never heard of the transaction, or has forgotten it as one of long ago, counts as not having
 * committed it.
 */
export async function verdictOn(transactionId: string, database: Queryable): Promise<Verdict> {
  try {
    const {
      rows: [row],
    } = await database.query<{ status: Verdict | null }>('SELECT pg_xact_status($1::xid8) AS status', [transactionId]);
    return row?.status ?? 'aborted';
  } catch (error) {
    // That is so if the server crashed before the transaction was on disk, or is a standby that took over before
    // receiving it.
    if (codeOf(error) === ID_IN_THE_FUTURE) return 'aborted';
    throw error;
  }
}

/** `invalid_parameter_value`, which has no other reason here. */
const ID_IN_THE_FUTURE = '22023';
