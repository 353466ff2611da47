/** Reports the environment and the figures of every benchmark. */
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { type Row, writeFigures } from './documents.ts';
import { isEnding } from './ending.ts';
import { machine } from './machine.ts';
import { isBrief, isWriting } from './options.ts';

/** A figure, or one for each round: then the least, the middle and the most are shown. */
export type Figures = number | readonly number[];

/** A figure that another process reads from a benchmark it has started. */
export type Figure = { readonly name: string; readonly figure: number; readonly unit: string };

const rows: Row[] = [];
const measured: Figure[] = [];

export function heading(question: string): void {
  console.log(`\n${question}`);
  console.log(`${machine()}${isBrief ? ', brief: not a measurement' : ''}`);
}

export const line = (name: string, figures: Figures, unit: string, note = ''): void =>
  report(name, figures, unit, note, false);

/** Reports one of the few figures that also stand in the README. */
export const headline = (name: string, figures: Figures, unit: string, note = ''): void =>
  report(name, figures, unit, note, true);

function report(name: string, figures: Figures, unit: string, note: string, isHeadline: boolean): void {
  if (isEnding()) return;
  measured.push({ name, figure: typeof figures === 'number' ? figures : median(figures), unit });
  if (typeof figures === 'number') {
    console.log(`  ${name.padEnd(52)} ${shown(figures).padStart(24)} ${unit.padEnd(9)} ${note}`);
    rows.push({ name, figures: `${shown(figures)} ${unit}`, note, isHeadline });
    return;
  }
  const [least = '', middle = '', most = ''] = [Math.min(...figures), median(figures), Math.max(...figures)].map(shown);
  console.log(`  ${name.padEnd(52)} ${[least, middle, most].join(' / ').padStart(24)} ${unit.padEnd(9)} ${note}`);
  rows.push({ name, figures: `${least} / **${middle}** / ${most} ${unit}`, note, isHeadline });
}

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

export const percentile = (sorted: ArrayLike<number>, percent: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;

export const shown = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

/** Only what a benchmark has measured to its end is written; a process that it has forked writes nothing. */
if (isWriting && isMainThread && process.send === undefined)
  process.once('exit', (status) => {
    if (status !== 0 || isEnding() || rows.length === 0) return;
    writeFigures(PACKAGE_ROOT, { name: basename(process.argv[1] ?? '', '.js'), machine: machine(), rows });
  });

const figuresFile = process.env.BENCH_FIGURES;
if (figuresFile !== undefined && isMainThread && process.send === undefined)
  process.once('exit', (status) => {
    if (status === 0 && !isEnding()) writeFileSync(figuresFile, JSON.stringify(measured));
  });
