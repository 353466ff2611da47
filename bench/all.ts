/** Runs every benchmark of this folder, one after the other. `--brief` runs each for a moment, to see that it still works. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const benches = readdirSync(folder).filter((file) => file.endsWith('.js') && file !== 'all.js').sort();
/** Longer than any of them takes; one that hangs is a failure. */
const TIMEOUT_MS = 15 * 60_000;
const BRIEF_TIMEOUT_MS = 60_000;
const timeout = process.argv.includes('--brief') ? BRIEF_TIMEOUT_MS : TIMEOUT_MS;
const failed: string[] = [];
for (const bench of benches) {
  const { status } = spawnSync(process.execPath, ['--expose-gc', join(folder, bench), ...process.argv.slice(2)], { stdio: 'inherit', timeout, killSignal: 'SIGKILL' });
  if (status !== 0) failed.push(bench);
}
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
