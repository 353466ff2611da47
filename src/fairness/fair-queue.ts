import { append } from '../core/base/lists.ts';

/**
 * How many of a limited number of places each caller has taken. Callers are orgs, or the addresses that people sign in
 * from. The quota of each is half of the places, so that some are always left for others. The caller null, an
 * operator's credential that is bound to no org, is not limited. The quota does not depend on what others have taken,
 * so it reveals nothing about them.
 */
export class CallerQuota {
  readonly #quota: number;
  readonly #inUse = new Map<string, number>();

  constructor(places: number) {
    this.#quota = Math.ceil(places / 2);
  }

  /** False when the caller has used up its quota. A place that was acquired must be released exactly once. */
  tryAcquire(caller: string | null, places = 1): boolean {
    if (caller === null) return true;
    const inUse = this.#inUse.get(caller) ?? 0;
    if (inUse + places > this.#quota) return false;
    this.#inUse.set(caller, inUse + places);
    return true;
  }

  /** Takes a place that must not be refused, even beyond the quota. It must be released like any other. */
  acquireAnyway(caller: string | null): void {
    if (caller !== null) this.#inUse.set(caller, (this.#inUse.get(caller) ?? 0) + 1);
  }

  release(caller: string | null, places = 1): void {
    if (caller === null) return;
    const inUse = this.#inUse.get(caller) ?? 0;
    if (inUse > places) this.#inUse.set(caller, inUse - places);
    else this.#inUse.delete(caller);
  }
}

export type FairQueueOptions = {
  /** How many pieces of work run at the same time. */
  readonly atOnce: number;
  /** How many may run or wait. A single caller gets half of them. */
  readonly places: number;
};

/**
 * A fair queue, round robin by caller (an org or an address), for work whose pieces would delay everybody. Few pieces
 * run at the same time, and however much one caller submits, any other waits for at most one piece of it.
 */
export class FairQueue {
  readonly #places: number;
  readonly #quota: CallerQuota;
  /** By caller; the next in turn is first. */
  readonly #waiting = new Map<string | null, (() => void)[]>();
  #inUse = 0;
  #free: number;

  constructor({ atOnce, places }: FairQueueOptions) {
    this.#free = atOnce;
    this.#places = places;
    this.#quota = new CallerQuota(places);
  }

  /** How many pieces run or wait. */
  get inUse(): number {
    return this.#inUse;
  }
  get isFull(): boolean {
    return this.#inUse >= this.#places;
  }

  /** Undefined, and nothing is run, when there is no place left. */
  run<T>(caller: string | null, work: () => Promise<T>): Promise<T> | undefined {
    if (this.isFull || !this.#quota.tryAcquire(caller)) return undefined;
    this.#inUse += 1;
    return this.#runInTurn(caller, work);
  }

  /**
   * For a later piece of work that has already begun: it takes a place and waits for its turn, but is never refused.
   */
  runFurther<T>(caller: string | null, work: () => Promise<T>): Promise<T> {
    this.#quota.acquireAnyway(caller);
    this.#inUse += 1;
    return this.#runInTurn(caller, work);
  }

  async #runInTurn<T>(caller: string | null, work: () => Promise<T>): Promise<T> {
    try {
      if (this.#free > 0) this.#free -= 1;
      else await this.#turnOf(caller);
      return await work();
    } finally {
      this.#inUse -= 1;
      this.#quota.release(caller);
      this.#beginNext(caller);
    }
  }

  #turnOf(caller: string | null): Promise<void> {
    return new Promise((resolve) => append(this.#waiting, caller, resolve));
  }

  /** The served caller moves to the end. */
  #beginNext(served: string | null): void {
    const rest = this.#waiting.get(served);
    if (rest !== undefined) {
      this.#waiting.delete(served);
      this.#waiting.set(served, rest);
    }
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    const [caller, queue] = next;
    const begin = queue.shift();
    if (queue.length === 0) this.#waiting.delete(caller);
    begin?.();
  }
}
