/** Feeds parsers with what is almost right, and reports the first input that one does not survive. */
import { randomOf } from '../support/random.ts';
import { Mutator } from './mutate.ts';
import type { Target } from './targets.ts';

/** No input of a few kilobytes may take longer. */
const HANG_MS = 1_000;

export type Fuzzed = {
  readonly inputs: number;
  readonly taken: number;
  readonly slowestMs: number;
  readonly slowest: string;
};

/** Each input has a random state of its own: `seed` and its number bring it back. */
export function fuzz(targets: readonly Target[], seed: number, inputs: number, hangMs = HANG_MS): Fuzzed {
  const shares = targets.reduce((sum, { share }) => sum + share, 0);
  let [done, taken, slowestMs, slowest] = [0, 0, 0, ''];
  for (const [at, target] of targets.entries()) {
    const count = Math.ceil((inputs * target.share) / shares);
    for (let nth = 0; nth < count; nth += 1) {
      const own = (seed + at * 0x9e37_79b1 + nth * 0x85eb_ca6b) >>> 0;
      try {
        const { isTaken, tookMs } = timed(target, own, hangMs);
        if (isTaken) taken += 1;
        if (tookMs > slowestMs) [slowestMs, slowest] = [tookMs, `${target.name}, input ${own}`];
      } catch (error) {
        throw new Error(`${target.name} did not survive input ${own}`, { cause: error });
      }
    }
    done += count;
  }
  return { inputs: done, taken, slowestMs, slowest };
}

/** A machine that is busy with other things stops everything now and then: only what is slow each time is slow. */
function timed(target: Target, own: number, hangMs: number): { readonly isTaken: boolean; readonly tookMs: number } {
  let tookMs = Number.POSITIVE_INFINITY;
  let isTaken = false;
  for (let tries = 0; tries < 3 && tookMs > hangMs; tries += 1) {
    const startMs = performance.now();
    isTaken = target.run(new Mutator(randomOf(own)));
    tookMs = performance.now() - startMs;
  }
  if (tookMs > hangMs) throw new Error(`it took ${Math.round(tookMs)} ms`);
  return { isTaken, tookMs };
}
