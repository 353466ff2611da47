import { readlinkSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';

const LOWEST_PRIORITY = 19;

/**
 * Steps of `nice` below the process: where threads compete, 5 leave this one a third of the processor time of any
 * other, and 10 a tenth. On Linux only: elsewhere a thread has no priority of its own. There, and where it is
 * forbidden, it competes.
 */
export function lowerOwnPriority(steps: number): void {
  if (process.platform !== 'linux') return;
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority() + steps, LOWEST_PRIORITY));
  } catch {
    // Forbidden, as some sandboxes do: the work is done all the same.
  }
}
