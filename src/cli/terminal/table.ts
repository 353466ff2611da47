/** Rows as columns of text. */

import { csvCell } from '../../audit-log/csv.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { printable } from './printable.ts';
import { clipped, padded, piecesOf, widthOf } from './width.ts';
import { brief } from './words.ts';

export type Row = Readonly<Record<string, unknown>>;

export const isRows = (items: unknown): items is readonly Row[] => Array.isArray(items) && items.every(isMapping);

export type Column = {
  readonly title: string;
  /** The path of the cell's value in the row, `agent.org_id`, or a function of the row. */
  readonly cell: string | ((row: Row) => unknown);
  /** Never shortened, because people copy it into the next command. */
  readonly isWhole?: boolean;
  /** Shortened only once every spare column is left out. */
  readonly isKept?: boolean;
  /** Goes on below where it does not fit, instead of being cut off. */
  readonly isWrapped?: boolean;
  /**
   * Left out where not all would fit the terminal: the last one first, but before the others one that is empty in every
   * row.
   */
  readonly isSpare?: boolean;
};

const GAP = '  ';
const LEAST_WIDTH = 6;
const NOTHING = '-';

/** `width` is that of the terminal; undefined shortens nothing. The first line is the heading. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly Row[],
  width: number | undefined,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => textOf(column, row)));
  const natural = columns.map(({ title }, at) =>
    cells.reduce((widest, row) => Math.max(widest, widthOf(row[at] ?? '')), widthOf(title)),
  );
  // Empty columns make room first.
  const isEmpty = (at: number): boolean => cells.length > 0 && cells.every((row) => row[at] === NOTHING);
  const empty = columns.findLastIndex(({ isSpare }, at) => isSpare === true && isEmpty(at));
  const isWide = width !== undefined && natural.reduce((sum, each) => sum + each, gapsOf(columns)) > width;
  const spare = columns.findLastIndex(({ isSpare }) => isSpare === true);
  if (isWide && empty !== -1)
    return tableLines(
      columns.filter((_, at) => at !== empty),
      rows,
      width,
    );
  if (width !== undefined && spare !== -1 && leastWidth(columns, natural, ({ isKept }) => isKept === true) > width)
    return tableLines(
      columns.filter((_, at) => at !== spare),
      rows,
      width,
    );
  const widths = width === undefined ? natural : fitted(columns, natural, cells, width);
  return [
    lineOf(
      columns,
      columns.map(({ title }) => title),
      widths,
    ),
    ...cells.flatMap((row) => linesOf(columns, row, widths)),
  ];
}

/** Whole cells as CSV (RFC 4180). */
export function csvLines(columns: readonly Column[], rows: readonly Row[], hasHeading: boolean): readonly string[] {
  const cellOf = (text: string): string => (text === NOTHING ? '' : csvCell(text));
  return [
    ...(hasHeading ? [columns.map(({ title }) => title.toLowerCase()).join()] : []),
    ...rows.map((row) => columns.map((column) => cellOf(textOf(column, row))).join()),
  ];
}

export const textOf = ({ cell }: Column, row: Row): string =>
  cellText(typeof cell === 'string' ? valueAt(row, cell) : cell(row));

function linesOf(columns: readonly Column[], cells: readonly string[], widths: readonly number[]): readonly string[] {
  const pieces = cells.map((cell, at) => (columns[at]?.isWrapped === true ? piecesOf(cell, widths[at] ?? 0) : [cell]));
  const height = Math.max(...pieces.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) =>
    lineOf(
      columns,
      pieces.map((each) => each[line] ?? ''),
      widths,
    ),
  );
}

const lineOf = (columns: readonly Column[], cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, at) => padded(columns[at]?.isWhole === true ? cell : clipped(cell, widths[at] ?? 0), widths[at] ?? 0))
    .join(GAP)
    .trimEnd();

const gapsOf = (columns: readonly Column[]): number => GAP.length * (columns.length - 1);

/** Returns the width when all columns are shortened that may be, except those of which `isFull` is true. */
const leastWidth = (
  columns: readonly Column[],
  natural: readonly number[],
  isFull: (column: Column) => boolean = () => false,
): number =>
  columns.reduce((sum, column, at) => {
    const width = natural[at] ?? 0;
    return sum + (column.isWhole === true || isFull(column) ? width : Math.min(width, LEAST_WIDTH));
  }, gapsOf(columns));

/** Takes columns away from the widest cells until all fit, or until nothing more may be taken. */
function fitted(
  columns: readonly Column[],
  natural: readonly number[],
  cells: readonly (readonly string[])[],
  width: number,
): readonly number[] {
  const least = leastWidth(columns, natural);
  const widths = natural.map((each, at) =>
    columns[at]?.isWhole === true
      ? widestWithin(
          each - (least - width),
          each,
          cells.map((row) => widthOf(row[at] ?? '')),
        )
      : each,
  );
  let excess = widths.reduce((sum, each) => sum + each, gapsOf(columns)) - width;
  while (excess > 0) {
    const widest = columns.reduce(
      (best, { isWhole }, at) => (isWhole !== true && (widths[at] ?? 0) > (widths[best] ?? 0) ? at : best),
      -1,
    );
    if (widest === -1 || (widths[widest] ?? 0) <= LEAST_WIDTH) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

/** A cell that is too long for the screen overflows its column, instead of widening it for every other row. */
const widestWithin = (most: number, natural: number, cells: readonly number[]): number =>
  natural <= most
    ? natural
    : cells.reduce((widest, each) => (each <= most && each > widest ? each : widest), 0) || natural;

/** `label  value` lines. */
export function fieldLines(fields: readonly (readonly [string, unknown])[]): readonly string[] {
  const width = fields.reduce((widest, [label]) => Math.max(widest, label.length), 0);
  return fields.map(([label, value]) => `${padded(label, width)}${GAP}${cellText(value)}`);
}

export function valueAt(row: Row, path: string): unknown {
  let value: unknown = row;
  for (const step of path.split('.'))
    value = typeof value === 'object' && value !== null ? (value as Row)[step] : undefined;
  return value;
}

/**
 * A cell that shows the distance of a time from now, past or future: `12s`, `5m`. Machine formats have the time itself.
 */
export const awayAt =
  (path: string) =>
  (row: Row): unknown => {
    const time = valueAt(row, path);
    const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN;
    return Number.isNaN(ms) ? time : brief(Math.abs(Date.now() - ms));
  };

/** A missing value is a dash, so that other programs can split the table into columns. */
export function cellText(value: unknown): string {
  if (value === undefined || value === null || value === '') return NOTHING;
  if (Array.isArray(value)) return value.length === 0 ? NOTHING : value.map(cellText).join(',');
  return printable(typeof value === 'object' ? JSON.stringify(value) : String(value));
}
