import { fail, type Result } from '../../../core/base/result.ts';
import { codeOf } from '../../../core/base/text.ts';
import type { Fault } from '../../../core/fault.ts';
import type { Replaced, UnknownRun } from '../../../ports/cluster.ts';
import type { Postgres } from '../postgres.ts';
import type { Queryable } from '../queryable.ts';

const REPLACED = 'SV001';
const UNKNOWN_RUN = 'SV002';

/** As `attempt`, with what the functions of the schema say about this run as faults. */
export async function attemptAsRun<T>(
  postgres: Postgres,
  work: (on: Queryable) => Promise<T>,
): Promise<Result<T, Fault | Replaced | UnknownRun>> {
  try {
    return await postgres.attempt(work);
  } catch (error) {
    if (codeOf(error) === REPLACED) return fail({ kind: 'replaced' });
    if (codeOf(error) === UNKNOWN_RUN) return fail({ kind: 'unknown_run' });
    throw error;
  }
}

/** As `transact`. Where this run may not write, nothing is written: its membership finds that out by itself. */
export async function transactAsRun<T>(
  postgres: Postgres,
  work: (on: Queryable) => Promise<Result<T, Fault>>,
): Promise<Result<T, Fault>> {
  try {
    return await postgres.transact(work);
  } catch (error) {
    const code = codeOf(error);
    if (code === REPLACED || code === UNKNOWN_RUN) return fail({ kind: 'store_unreachable', retryAfterSecs: 1 });
    throw error;
  }
}
