import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';

/** Where and of what figures were measured. */
export function machine(): string {
  const commit = spawnSync('git', ['describe', '--always', '--dirty=, changed', '--exclude=*'], {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
  }).stdout?.trim();
  const gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${gib} GiB, Node.js ${process.version}, commit ${commit || 'unknown'}`;
}
