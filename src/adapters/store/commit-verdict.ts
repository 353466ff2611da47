/** What became of a transaction of which the database was asked to commit it, and was cut off before it said so. */
import { codeOf } from '../../core/error-text.ts';
import type { Queryable } from './postgres.ts';

export type Verdict = 'committed' | 'aborted' | 'in progress';

/** Null: it has written nothing. Asked before COMMIT, and not together with it: the answer would be lost with that to COMMIT. */
export async function transactionIdIn(transaction: Queryable): Promise<string | null> {
  const { rows: [row] } = await transaction.query<{ id: string | null }>('SELECT pg_current_xact_id_if_assigned()::text AS id');
  return row?.id ?? null;
}

/** A server that has forgotten the transaction, as one of long ago, or has never heard of it, has not committed it. */
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
