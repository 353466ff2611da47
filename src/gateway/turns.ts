import { OrgShares } from './org-shares.ts';

export type TurnsOptions = {
  /** Pieces of work that are done at the same time. */
  readonly atOnce: number;
  /** Those and what waits for its turn. Half of them, for one org. */
  readonly places: number;
};

/**
 * Work of which each piece takes long for everybody: little of it is done at the same time, and the orgs have turns. However
 * much one org asks for, any other waits until a piece of that is done, and no longer.
 */
export class Turns {
  readonly #places: number;
  readonly #shares: OrgShares;
  /** By org; the one whose turn is next stands first. */
  readonly #waiting = new Map<string | null, (() => void)[]>();
  #taken = 0;
  #free: number;

  constructor({ atOnce, places }: TurnsOptions) {
    this.#free = atOnce;
    this.#places = places;
    this.#shares = new OrgShares(places);
  }

  /** Undefined, and nothing is done, where there is no place. */
  run<T>(orgId: string | null, work: () => Promise<T>): Promise<T> | undefined {
    if (this.#taken >= this.#places || !this.#shares.take(orgId)) return undefined;
    this.#taken += 1;
    return this.#turnOf(orgId).then(work).finally(() => {
      this.#taken -= 1;
      this.#shares.giveBack(orgId);
      this.#passOn(orgId);
    });
  }

  #turnOf(orgId: string | null): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const queue = this.#waiting.get(orgId);
      if (queue === undefined) this.#waiting.set(orgId, [resolve]);
      else queue.push(resolve);
    });
  }

  /** The org that has had its turn goes behind the others. */
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
    const [orgId, queue] = next;
    const begin = queue.shift();
    if (queue.length === 0) this.#waiting.delete(orgId);
    begin?.();
  }
}
