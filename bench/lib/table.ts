/** Figures with their least, middle and most, printed as they come and written into docs/performance.md on demand. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';

import { isEnding } from './ending.ts';
import { isWriting } from './options.ts';
import { median, shown } from './report.ts';

const DOCUMENT = join(PACKAGE_ROOT, 'docs', 'performance.md');

export class Table {
  readonly #name: string;
  readonly #rows: string[] = [];

  /** `name`: that of the marker in the document, `<!-- measured NAME -->` to `<!-- /measured NAME -->`. */
  constructor(name: string) {
    this.#name = name;
  }

  /** One value for each round. */
  row(name: string, values: readonly number[], unit: string, note = ''): void {
    if (isEnding()) return;
    const figures = [Math.min(...values), median(values), Math.max(...values)].map(shown);
    console.log(`  ${name.padEnd(52)} ${figures.join(' / ').padStart(24)} ${unit.padEnd(9)} ${note}`);
    const [least, middle, most] = figures;
    this.#rows.push(`| ${name} | ${least} / **${middle}** / ${most} ${unit} | ${note} |`);
  }

  /** Call it after the last row. */
  end(): void {
    if (!isWriting || isEnding()) return;
    const [open, close] = [`<!-- measured ${this.#name} -->`, `<!-- /measured ${this.#name} -->`];
    const text = readFileSync(DOCUMENT, 'utf8');
    const [from, to] = [text.indexOf(open), text.indexOf(close)];
    if (from === -1 || to < from) throw new Error(`${DOCUMENT} has no ${open} … ${close} to write the figures to`);
    const rows = ['| | least / **median** / most | |', '| --- | --- | --- |', ...this.#rows].join('\n');
    writeFileSync(DOCUMENT, `${text.slice(0, from + open.length)}\n${rows}\n${text.slice(to)}`);
  }
}
