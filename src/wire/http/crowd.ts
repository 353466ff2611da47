import type { Fault } from '../../core/fault.ts';
import { fail, type Result } from '../../core/result.ts';
import { CallerQuota } from '../../gateway/caller-quota.ts';
import type { Crowding } from './route.ts';

/** The requests of one row in progress: bounded in number, and no more than half of them from one address. */
export class Crowd {
  readonly refusal: Result<never, Fault>;
  readonly #limit: number;
  readonly #quota: CallerQuota;
  #size = 0;

  constructor({ limit, what }: Crowding) {
    this.#limit = limit;
    this.#quota = new CallerQuota(limit);
    this.refusal = fail({ kind: 'overloaded', what, retryAfterSecs: 1 });
  }

  get isFull(): boolean { return this.#size >= this.#limit; }

  /** False where there is no place. Who enters must leave exactly once. */
  enter(network: string): boolean {
    if (this.isFull || !this.#quota.tryAcquire(network)) return false;
    this.#size += 1;
    return true;
  }

  leave(network: string): void {
    this.#size -= 1;
    this.#quota.release(network);
  }
}
