import type { Fault } from '../../core/fault.ts';
import { fail } from '../../core/result.ts';
import { Shares } from '../../gateway/shares.ts';
import type { Crowding } from './route.ts';

/** The requests of one row in progress: bounded in number, and no more than half of them from one address. */
export class Crowd {
  readonly refusal: { readonly ok: false; readonly fault: Fault };
  readonly #limit: number;
  readonly #shares: Shares;
  #size = 0;

  constructor({ limit, what }: Crowding) {
    this.#limit = limit;
    this.#shares = new Shares(limit);
    this.refusal = fail({ kind: 'overloaded', what, retryAfterSecs: 1 });
  }

  get isFull(): boolean { return this.#size >= this.#limit; }

  /** False where there is no place. Who enters must leave exactly once. */
  enter(network: string): boolean {
    if (this.isFull || !this.#shares.take(network)) return false;
    this.#size += 1;
    return true;
  }

  leave(network: string): void {
    this.#size -= 1;
    this.#shares.giveBack(network);
  }
}
