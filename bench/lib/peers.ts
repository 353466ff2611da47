/** Installs other engines and servers for one run, into a folder that is removed with it. */
import { spawnSync } from 'node:child_process';
import { scratchFolder } from './ending.ts';
import { isBrief } from './options.ts';

const TIMEOUT_MS = 180_000;

/** The folder that they are installed in; undefined, with a line that says so, where they are not to be had. */
export function installPeers(...packages: readonly string[]): string | undefined {
  if (isBrief) {
    console.log(`  left out of a brief run: ${packages.join(', ')}`);
    return undefined;
  }
  const folder = scratchFolder();
  const words = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, ...packages];
  const { status, stderr, error } = spawnSync('npm', words, { encoding: 'utf8', timeout: TIMEOUT_MS });
  if (status === 0) return folder;
  const reason =
    error?.message ?? stderr.split('\n').find((text) => /npm (error|ERR!)/.test(text)) ?? `status ${status}`;
  console.log(`  left out, because npm cannot install it: ${packages.join(', ')} (${reason})`);
  return undefined;
}
