import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { FILES } from './documents.ts';

/**
 * Returns the commit of the sources. The documents that figures are written to may differ: the run itself changes them.
 */
export function commit(): string {
  const git = (...args: string[]): string =>
    spawnSync('git', args, { cwd: PACKAGE_ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
  const name = git('rev-parse', '--short', 'HEAD') || 'unknown';
  const isChanged = git('status', '--porcelain', '-uno', '--', '.', ...FILES.map((file) => `:!${file}`)) !== '';
  return isChanged ? `${name}, changed` : name;
}

/** Describes the machine and the commit that were measured. */
export function machine(): string {
  const gib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${gib} GiB, Node.js ${process.version}, commit ${commit()}`;
}
