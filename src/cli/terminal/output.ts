/** Output of commands: for people as text, for programs as JSON or YAML, and for those alone on standard output. */
import type { OutputFormat } from '../invocation.ts';
import { isPrintable, printable, printableLines } from './printable.ts';
import { type Column, type Row, tableLines } from './table.ts';

/** `value` is for programs. `lines` are for people, and already printable. */
export async function show(format: OutputFormat, value: unknown, lines: () => readonly string[]): Promise<void> {
  switch (format) {
    case 'table':
      return writeLines(lines());
    case 'json':
      return writeOut(jsonText(value, 2));
    case 'yaml':
      return writeOut(await yamlText(value));
  }
}

export type ShownTable = {
  /** For programs. */
  readonly value: unknown;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Printed to standard error instead of an empty table. */
  readonly none: string;
};

export const showTable = (format: OutputFormat, { value, columns, rows, none }: ShownTable): Promise<void> =>
  show(format, value, () => {
    if (rows.length === 0) note(none);
    return rows.length === 0 ? [] : styledTable(columns, rows);
  });

/** On a terminal no wider than it, with a heading that stands out. */
export function styledTable(columns: readonly Column[], rows: readonly Row[]): readonly string[] {
  const [heading = '', ...rest] = tableLines(columns, rows, terminalWidth());
  return [bold(heading), ...rest];
}

/**
 * Undefined if standard output is not a terminal, or a terminal that reports a width of 0: output for programs is not
 * shortened.
 */
const terminalWidth = (): number | undefined =>
  process.stdout.isTTY === true ? process.stdout.columns || undefined : undefined;

export function writeLines(lines: readonly string[]): void {
  if (lines.length > 0) writeOut(`${lines.join('\n')}\n`);
}

export function writeOut(text: string): void {
  process.stdout.write(text);
}

let needsReader = true;

/** From now on the command goes on when the reader of a pipe leaves, as `head` does: it has more to do than print. */
export const tolerateClosedPipe = (): void => {
  needsReader = false;
};
export const isReaderNeeded = (): boolean => needsReader;

/** A message for the person at the terminal, kept apart from what programs read. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Prints a value on one line, or indented, with every character escaped that could drive a terminal. */
export const jsonText = (value: unknown, indent = 0): string =>
  `${printableLines(JSON.stringify(value, null, indent))}\n`;

export async function yamlText(value: unknown): Promise<string> {
  const { Document, Scalar, visit } = await import('yaml');
  const document = new Document(value, { aliasDuplicateObjects: false });
  // Only within double quotes is an escaped character the same text.
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && !isPrintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return printableLines(document.toString({ lineWidth: 0 }));
}

const isColoured = (): boolean =>
  process.stdout.isTTY === true && (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb';
const coloured =
  (code: number, off: number) =>
  (text: string): string =>
    isColoured() ? `\u001b[${code}m${text}\u001b[${off}m` : text;

export const bold = coloured(1, 22);
export const dim = coloured(2, 22);
export const red = coloured(31, 39);
export const green = coloured(32, 39);
export const yellow = coloured(33, 39);
