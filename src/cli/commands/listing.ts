/** What the commands that list things have in common. */
import { Api } from '../api.ts';
import type { Query } from '../http.ts';
import type { Invocation, Options } from '../invocation.ts';
import { note, showTable } from '../output.ts';
import type { Column } from '../table.ts';

const DEFAULT_LIMIT = 100;

export const limitOf = (options: Options): number => options.count('limit', '--limit', 1) ?? DEFAULT_LIMIT;

export const moreNote = (shown: number): string =>
  `There are more than ${shown === 1 ? 'this one' : `these ${shown}`}; raise --limit to see them.`;

type Listing = {
  readonly path: string;
  /** The field of the answer that holds the rows. */
  readonly key: string;
  readonly query?: Query;
  readonly columns: readonly Column[];
  /** A sentence for a listing without rows. */
  readonly none: string;
};

/** Shows at most `--limit` rows, and notes it when there are more. */
export async function showList(
  invocation: Invocation,
  { path, key, query = {}, columns, none }: Listing,
): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const { rows, nextCursor } = await api.list(path, key, { query, limit: limitOf(options) });
  await showTable(globals.output, { value: { [key]: rows, next_cursor: nextCursor }, columns, rows, none });
  if (nextCursor !== null) note(moreNote(rows.length));
}
