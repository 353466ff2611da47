import type { Fault } from '../core/fault.ts';
import { fail, type Result } from '../core/result.ts';
import type { Clock } from './ports.ts';

type UseCase<Input, Value> = (input: Input) => Promise<Result<Value, Fault>>;

export type Bounds = {
  /** How many calls may run at once. */
  readonly atOnce: number;
  /** How many more may wait. Any further one is refused at once, as `overloaded`. */
  readonly waiting: number;
  /** Calls that wait longer than this are refused too: the caller has given up, or will before the answer. */
  readonly waitMs: number;
  /** What is overloaded, for the fault. */
  readonly what: string;
};

/**
 * Runs a use case a few times at once and queues further calls in order, before they have cost anything: a
 * queue further in would hold them too, but only after all of them together had asked the database.
 */
export function bounded<Input, Value>({ atOnce, waiting, waitMs, what }: Bounds, clock: Clock, useCase: UseCase<Input, Value>): UseCase<Input, Value> {
  const overloaded = fail({ kind: 'overloaded', what, retryAfterSecs: 1 } as const);
  const queue: (() => void)[] = [];
  let running = 0;

  return async (input) => {
    if (running < atOnce) running += 1;
    else {
      if (queue.length >= waiting) return overloaded;
      const sinceMs = clock.nowMs();
      await new Promise<void>((resolve) => queue.push(resolve));
      if (clock.nowMs() - sinceMs > waitMs) {
        leave();
        return overloaded;
      }
    }
    try {
      return await useCase(input);
    } finally {
      leave();
    }
  };

  /** The place passes to the caller that has waited longest; it is freed only when nobody waits. */
  function leave(): void {
    const next = queue.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
