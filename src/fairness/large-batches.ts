import { FairQueue } from './fair-queue.ts';

/**
 * Two at once, so that one can be read while the other waits for the answers to a slice. Few places in all, because a
 * batch keeps its whole message in memory while it waits.
 */
const KNOWN = { atOnce: 2, places: 32 };
/**
 * Most likely all of these checks will be denied. They are answered anyway, as long as nobody else has to wait for
 * that.
 */
const STRANGERS = { atOnce: 1, places: 4 };

/** The batches of more than one slice that are worked on in one I/O thread, or wait for their turn. */
export class LargeBatches {
  readonly #known = new FairQueue(KNOWN);
  readonly #strangers = new FairQueue(STRANGERS);

  get inUse(): number {
    return this.#known.inUse + this.#strangers.inUse;
  }

  /**
   * `orgId` is the org of a credential that holds; undefined for callers without one, who could name any org and take
   * its places. Undefined, and nothing is done, where there is no place.
   */
  run<T>(orgId: string | undefined, work: () => Promise<T>): Promise<T> | undefined {
    return orgId === undefined ? this.#strangers.run(null, work) : this.#known.run(orgId, work);
  }
}
