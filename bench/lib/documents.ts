/**
 * Writes measured figures into the documents: all of a benchmark in docs/performance.md between `<!-- measured NAME
 * -->` and `<!-- /measured NAME -->`; the few that matter most in the README, in one table of the rows of all
 * benchmarks, where `<!-- NAME -->` marks each row's benchmark.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PERFORMANCE = join('docs', 'performance.md');

export type Measured = {
  /** The name of the benchmark. */
  readonly name: string;
  /** On what it ran. */
  readonly machine: string;
  readonly rows: readonly Row[];
};

export type Row = {
  readonly name: string;
  /** With its unit. */
  readonly figures: string;
  readonly note: string;
  readonly isHeadline: boolean;
};

const MARKED = /<!-- [\w-]+ --> \|$/;
const HEAD = '| | least / **median** / most | |\n| --- | --- | --- |';
const cellsOf = ({ name, figures, note }: Row): string => `| ${name} | ${figures} |${note === '' ? '' : ` ${note}`}`;

/** The text of docs/performance.md with these figures in place of those of the last time. */
export function inPerformance(text: string, { name, machine, rows }: Measured): string {
  const [open, close] = [`<!-- measured ${name} -->`, `<!-- /measured ${name} -->`];
  const [from, to] = [text.indexOf(open), text.indexOf(close)];
  if (from === -1 || to < from)
    throw new Error(`docs/performance.md has no ${open} … ${close} to write the figures to`);
  const table = [HEAD, ...rows.map((row) => `${cellsOf(row)} |`)].join('\n');
  return `${text.slice(0, from + open.length)}\n${table}\n\n${machine}.\n\n${text.slice(to)}`;
}

/** The text of the README likewise. */
export function inReadme(text: string, { name, rows }: Measured): string {
  const headlines = rows.filter(({ isHeadline }) => isHeadline);
  if (headlines.length === 0) return text;
  const mark = `<!-- ${name} --> |`;
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.endsWith(mark));
  // The first row of a benchmark goes to the end of the table.
  const at = first === -1 ? lines.findLastIndex((line) => MARKED.test(line)) + 1 : first;
  if (at === 0) throw new Error('README.md has no table of figures: rows that end with <!-- NAME --> |');
  const written = headlines.map((row) => `${cellsOf(row)} ${mark}`);
  return [...lines.slice(0, at), ...written, ...lines.slice(at).filter((line) => !line.endsWith(mark))].join('\n');
}

/** Which figures of docs/performance.md were not measured at this commit, and so should not stand beside the others. */
export const measuredElsewhere = (text: string, commit: string): readonly string[] =>
  [...text.matchAll(/<!-- measured ([\w-]+) -->\n(.*?)<!-- \/measured \1 -->/gs)].flatMap(
    ([, name = '', block = '']) => {
      const found = /, commit ([^\n]+)\.\n/.exec(block)?.[1];
      return found === commit ? [] : [`${name} (${found === undefined ? 'not measured' : `commit ${found}`})`];
    },
  );

/** The documents with figures. */
export const FILES: readonly string[] = [PERFORMANCE, 'README.md'];

export function writeFigures(root: string, measured: Measured): void {
  for (const [file, change] of [
    [PERFORMANCE, inPerformance],
    ['README.md', inReadme],
  ] as const) {
    const path = join(root, file);
    writeFileSync(path, change(readFileSync(path, 'utf8'), measured));
  }
}
