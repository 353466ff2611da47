import { OrgShares } from './org-shares.ts';

/**
 * Work of which each piece takes long for everybody: done one after the other, and the orgs in turn. However much one org
 * asks for, any other waits for one piece of it and no more.
 */
export class Turns {
  readonly #places: number;
  readonly #shares: OrgShares;
  /** By org; the one whose turn is next stands first. */
  readonly #waiting = new Map<string | null, (() => void)[]>();
  #taken = 0;
  #isBusy = false;

  /** `places`: pieces of work at once, those that wait included. Half of them, for one org. */
  constructor(places: number) {
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
      this.#passOn();
    });
  }

  #turnOf(orgId: string | null): Promise<void> {
    if (!this.#isBusy) {
      this.#isBusy = true;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const queue = this.#waiting.get(orgId);
      if (queue === undefined) this.#waiting.set(orgId, [resolve]);
      else queue.push(resolve);
    });
  }

  /** An org that has had its turn goes behind the others. */
  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#isBusy = false;
      return;
    }
    const [orgId, queue] = next;
    const begin = queue.shift();
    this.#waiting.delete(orgId);
    if (queue.length > 0) this.#waiting.set(orgId, queue);
    begin?.();
  }
}
