/**
 * Runs every benchmark of this folder, one after the other. `--brief` runs each for a moment, to see that it still
 * works.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBrief } from './lib/options.ts';

const folder = dirname(fileURLToPath(import.meta.url));
const benches = readdirSync(folder)
  .filter((file) => file.endsWith('.js') && file !== 'all.js')
  .sort();
/** Longer than any of them takes on a busy machine; one that hangs is a failure. */
const TIMEOUT_MS = (isBrief ? 3 : 15) * 60_000;
/** For removing what it has started and written. */
const ENDING_MS = 15_000;

let interruptedBy: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | undefined;
let notify = (_signal: 'SIGTERM'): unknown => undefined;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interruptedBy = signal;
    // A terminal interrupts both at once, and a process interrupted twice does not clean up.
    if (signal !== 'SIGINT') notify('SIGTERM');
  });
}

/** Why it failed, if it did. */
async function run(bench: string): Promise<string | undefined> {
  const child = spawn(process.execPath, ['--expose-gc', join(folder, bench), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  notify = (signal) => child.kill(signal);
  let isLate = false;
  const late = (): void => {
    isLate = true;
    child.kill('SIGTERM');
  };
  const timers = [setTimeout(late, TIMEOUT_MS), setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS + ENDING_MS)];
  const [status, signal] = (await once(child, 'exit')) as [number | null, string | null];
  for (const timer of timers) clearTimeout(timer);
  if (isLate) return `not done after ${TIMEOUT_MS / 60_000} minutes`;
  return status === 0 ? undefined : `ended by ${signal ?? `status ${status}`}`;
}

const failed: string[] = [];
for (const bench of benches) {
  const failure = await run(bench);
  if (interruptedBy !== undefined) process.exit(128 + constants.signals[interruptedBy]);
  if (failure !== undefined) failed.push(`${bench} (${failure})`);
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
