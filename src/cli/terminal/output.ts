/** Output of commands: for people as text, for programs as JSON or YAML, and for those alone on standard output. */
import { usageError } from '../errors.ts';
import type { Globals, Layout, OutputFormat } from '../invocation.ts';
import { filtered } from './jq.ts';
import { isPrintable, printable, printableLines } from './printable.ts';
import { type Column, csvLines, type Row, tableLines } from './table.ts';

/** `value` is for programs. `lines` are for people, and already printable. */
export async function show(format: OutputFormat, value: unknown, lines: () => readonly string[]): Promise<void> {
  switch (format) {
    case 'table':
      return writeLines(lines());
    case 'json':
      return writeOut(jsonText(value, 2));
    case 'yaml':
      return writeOut(await yamlText(value));
    default:
      return writeOut(await filtered(value, format.jq));
  }
}

/** The same for one value of many that come one after the other: in JSON a line, in YAML a document. */
export async function showNext(format: OutputFormat, value: unknown, line: () => string): Promise<void> {
  switch (format) {
    case 'json':
      return writeOut(jsonText(value));
    case 'yaml':
      return writeOut(`---\n${await yamlText(value)}`);
    default:
      return show(format, value, () => [line()]);
  }
}

export type ShownTable = {
  /** For programs. */
  readonly value: unknown;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Printed to standard error instead of an empty table. */
  readonly none: string;
  /** Colours the line of a row. */
  readonly tint?: (row: Row) => (text: string) => string;
};

export const showTable = (
  { output, layout }: Pick<Globals, 'output' | 'layout'>,
  { value, columns, rows, none, tint }: ShownTable,
): Promise<void> =>
  show(output, value, () => {
    const chosen = chosenColumns(columns, layout);
    if (layout.kind === 'csv') return csvLines(chosen, rows, layout.hasHeading);
    if (rows.length === 0) note(none);
    const lines = rows.length === 0 ? [] : styledTable(chosen, rows, layout);
    if (tint === undefined) return lines;
    const first = layout.hasHeading ? 1 : 0;
    return lines.map((line, at) => (at < first ? line : tint(rows[at - first]!)(line)));
  });

/** By their titles, in the order asked for, whatever the width of the terminal. */
export function chosenColumns(columns: readonly Column[], { columns: titles }: Layout): readonly Column[] {
  return (
    titles?.map((title) => {
      const found = columns.find((column) => column.title.toLowerCase() === title.toLowerCase());
      if (found !== undefined) return { ...found, isSpare: false };
      const known = columns.map((column) => column.title.toLowerCase()).join(', ');
      throw usageError(`there is no column ${printable(title)}`, `The columns are ${known}.`);
    }) ?? columns
  );
}

/** On a terminal no wider than it unless asked for, with a heading that stands out. */
export function styledTable(columns: readonly Column[], rows: readonly Row[], layout?: Layout): readonly string[] {
  const [heading = '', ...rest] = tableLines(columns, rows, layout?.kind === 'wide' ? undefined : terminalWidth());
  return layout?.hasHeading === false ? rest : [bold(heading), ...rest];
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
