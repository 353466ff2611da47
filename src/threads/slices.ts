import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Steps } from '../core/steps.ts';

/** How long one slice of long work on the main thread may delay a check. */
const SLICE_MS = 2;

/** Does all steps, and in between whatever else is due. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let endMs = performance.now() + SLICE_MS; ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() < endMs) continue;
    await nextTurn();
    endMs = performance.now() + SLICE_MS;
  }
}
