import { type Fault, invalid } from '../../core/fault.ts';
import { ok, type Result } from '../../core/result.ts';
import { MAX_BATCH_ITEMS } from '../limits.ts';

/** What a decoder throws out of its recursion. It never leaves this folder: `attempt` turns it into a value. */
export class Malformed extends Error {
  readonly field: string;
  readonly problem: string;
  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.field = field;
    this.problem = problem;
  }
}

export const tooMany = (field: string): Malformed => new Malformed(field, `must have 1 to ${MAX_BATCH_ITEMS} items`);

/** Runs a decoder; what it found malformed is a fault that names the field. */
export function attempt<T>(decode: () => T): Result<T, Fault> {
  try {
    return ok(decode());
  } catch (error) {
    return malformed(error);
  }
}

/** The fault of a caught `Malformed`; anything else is a defect and is thrown on. */
export function malformed(error: unknown): Result<never, Fault> {
  if (!(error instanceof Malformed)) throw error;
  return invalid(error.field, error.problem);
}
