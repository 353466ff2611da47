import { Shares } from './shares.ts';

export type TurnsOptions = {
  /** How many pieces of work run at the same time. */
  readonly atOnce: number;
  /** How many may run or wait. One caller gets half of them. */
  readonly places: number;
};

/**
 * A fair queue for work whose pieces would hold everybody up. Few pieces run at the same time, and the callers, orgs or
 * addresses, take turns. However much one caller asks for, any other waits for one piece of that work and no longer.
 */
export class Turns {
  readonly #places: number;
  readonly #shares: Shares;
  /** By caller; the one whose turn is next stands first. */
  readonly #waiting = new Map<string | null, (() => void)[]>();
  #taken = 0;
  #free: number;

  constructor({ atOnce, places }: TurnsOptions) {
    this.#free = atOnce;
    this.#places = places;
    this.#shares = new Shares(places);
  }

  /** How many pieces run or wait. */
  get taken(): number { return this.#taken; }

  /** Undefined, and nothing is run, when there is no place left. */
  run<T>(caller: string | null, work: () => Promise<T>): Promise<T> | undefined {
    if (this.#taken >= this.#places || !this.#shares.take(caller)) return undefined;
    this.#taken += 1;
    return this.#do(caller, work);
  }

  /** For a further piece of work that has begun. It takes a place and waits for its turn, but is never refused. */
  goOn<T>(caller: string | null, work: () => Promise<T>): Promise<T> {
    this.#shares.add(caller);
    this.#taken += 1;
    return this.#do(caller, work);
  }

  async #do<T>(caller: string | null, work: () => Promise<T>): Promise<T> {
    try {
      if (this.#free > 0) this.#free -= 1;
      else await this.#turnOf(caller);
      return await work();
    } finally {
      this.#taken -= 1;
      this.#shares.giveBack(caller);
      this.#passOn(caller);
    }
  }

  #turnOf(caller: string | null): Promise<void> {
    return new Promise((resolve) => {
      const queue = this.#waiting.get(caller);
      if (queue === undefined) this.#waiting.set(caller, [resolve]);
      else queue.push(resolve);
    });
  }

  /** The caller that has had its turn goes behind the others. */
  #passOn(hadTurn: string | null): void {
    const rest = this.#waiting.get(hadTurn);
    if (rest !== undefined) {
      this.#waiting.delete(hadTurn);
      this.#waiting.set(hadTurn, rest);
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
