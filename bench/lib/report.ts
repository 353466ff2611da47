/** What every benchmark says about where and on what it ran, and how it says a ratio. */
import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';
import { isEnding } from './ending.ts';
import { isBrief } from './options.ts';

export function heading(question: string): void {
  const commit = spawnSync('git', ['describe', '--always', '--dirty=, changed', '--exclude=*'], {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
  }).stdout?.trim();
  const gib = Math.round(totalmem() / 2 ** 30);
  console.log(`\n${question}`);
  console.log(
    `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${gib} GiB, Node.js ${process.version}, commit ${commit || 'unknown'}${isBrief ? ', brief: not a measurement' : ''}`,
  );
}

export function line(name: string, value: number, unit: string, note = ''): void {
  if (isEnding()) return;
  console.log(`  ${name.padEnd(44)} ${shown(value).padStart(12)} ${unit.padEnd(10)} ${note}`);
}

/** A speed is a ratio against a baseline of the same run: machines differ, and so do their moods. */
export function ratio(name: string, value: number, baseline: number, goal?: number): void {
  if (isEnding()) return;
  const share = baseline === 0 ? Number.NaN : value / baseline;
  console.log(
    `  ${name.padEnd(44)} ${share.toFixed(2).padStart(12)} ${'×'.padEnd(10)} ${goal === undefined ? '' : `goal: ${goal}`}`,
  );
}

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

export const percentile = (sorted: ArrayLike<number>, percent: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;

export const shown = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
