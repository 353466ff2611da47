import { fail, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Clock } from '../ports/ports.ts';
import type { UseCase } from '../ports/use-case.ts';
import { FairQueue } from './fair-queue.ts';

export type Bounds = {
  /** How many calls may run at once. */
  readonly atOnce: number;
  /** How many more may wait. Any further one is refused at once, as `overloaded`. */
  readonly waiting: number;
  /** Calls that wait longer than this are refused too: the caller has given up, or will before the answer. */
  readonly waitMs: number;
  /** Names the overloaded part, for the fault. */
  readonly what: string;
};

/**
 * Limits how many calls of a use case run at once. Further calls wait here, before they have cost anything: in a queue
 * further in, all of them would have queried the database first. They wait in a fair queue, where no caller takes more
 * than half of the places. Calls without a caller, null, count as one caller and have no such limit.
 */
export function bounded<Input, Value>(
  { atOnce, waiting, waitMs, what }: Bounds,
  clock: Clock,
  callerOf: (input: Input) => string | null,
  useCase: UseCase<Input, Value>,
): UseCase<Input, Value> {
  const overloaded = fail({ kind: 'overloaded', what, retryAfterSecs: 1 } as const);
  const queue = new FairQueue({ atOnce, places: atOnce + waiting });

  return async (input) => {
    const sinceMs = clock.nowMs();
    const queued = queue.run<Result<Value, Fault>>(callerOf(input), async () =>
      clock.nowMs() - sinceMs > waitMs ? overloaded : useCase(input),
    );
    return queued ?? overloaded;
  };
}
