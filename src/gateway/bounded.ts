import type { Fault } from '../core/fault.ts';
import { fail, type Result } from '../core/result.ts';

/**
 * Lets a use case run this many times at once and refuses one more at once, before it has cost anything: a queue further
 * in would refuse it too, but only after the database was asked on its behalf.
 */
export function bounded<Input, Value>(limit: number, what: string, useCase: (input: Input) => Promise<Result<Value, Fault>>): (input: Input) => Promise<Result<Value, Fault>> {
  let running = 0;
  return async (input) => {
    if (running >= limit) return fail({ kind: 'overloaded', what, retryAfterSecs: 1 });
    running += 1;
    try {
      return await useCase(input);
    } finally {
      running -= 1;
    }
  };
}
