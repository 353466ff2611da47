/**
 * Runs every benchmark of this folder, or those that are named, one after the other. `--brief` runs each for a moment,
 * to see that it still works; `--against` measures another commit in turn with this one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { ALTERNATING, alternate } from './lib/alternate.ts';
import { measuredElsewhere } from './lib/documents.ts';
import { commit } from './lib/machine.ts';
import { against, isBrief, isWriting, names } from './lib/options.ts';

const folder = dirname(fileURLToPath(import.meta.url));
const known = readdirSync(folder)
  .filter((file) => file.endsWith('.js') && file !== 'all.js')
  .map((file) => file.slice(0, -3))
  .sort();
const comparable = against === undefined ? known : ALTERNATING;
const stranger = names.find((name) => !comparable.includes(name));
if (stranger !== undefined) {
  console.error(
    `no benchmark ${stranger}${against === undefined ? '' : ' with --against'}; there are ${comparable.join(', ')}`,
  );
  process.exit(2);
}
const benches = names.length > 0 ? names : against === undefined ? known : ['governor'];
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
  const words = process.argv.slice(2).filter((word) => !names.includes(word));
  const child = spawn(process.execPath, ['--expose-gc', join(folder, `${bench}.js`), ...words], {
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
if (against !== undefined) {
  for (const bench of benches) await alternate(bench, against);
  process.exit(0);
}
for (const bench of benches) {
  const failure = await run(bench);
  if (interruptedBy !== undefined) process.exit(128 + constants.signals[interruptedBy]);
  if (failure !== undefined) failed.push(`${bench} (${failure})`);
}
if (isWriting && names.length === 0) {
  const text = readFileSync(join(PACKAGE_ROOT, 'docs', 'performance.md'), 'utf8');
  const elsewhere = measuredElsewhere(text, commit());
  if (elsewhere.length > 0) failed.push(`not all figures are of commit ${commit()}: ${elsewhere.join(', ')}`);
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
