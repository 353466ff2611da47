import { setTimeout as sleep } from 'node:timers/promises';
import type { Op } from '../../sdk/typescript/src/index.ts';

/** Passes one checkpoint after the other until one throws: the body of an operation that does not end by itself. */
export async function workForEver(op: Op): Promise<never> {
  for (;;) {
    await op.checkpoint();
    await sleep(5);
  }
}
