/** Ids of approvals and halts by their beginnings: who reads one in a list can copy it into the next command. */
import { CliError } from '../errors.ts';
import type { Api } from '../remote/api.ts';
import type { Query } from '../remote/http.ts';
import { printable } from '../terminal/printable.ts';
import type { Row } from '../terminal/table.ts';

/** Enough of an id to be told apart from any other in a list; every command takes it. */
export const LEAST_ID = 8;
/** As long as ids are made: what is as long is one. */
const WHOLE_ID = 36;

/** The shortest beginnings, of at least `LEAST_ID` characters, that no two of these ids share. */
export function shortIds(rows: readonly Row[]): ReadonlyMap<string, string> {
  const ids = rows.map(({ id }) => String(id));
  for (let length = LEAST_ID; ; length += 1) {
    const short = ids.map((id) => id.slice(0, length));
    if (new Set(short).size === new Set(ids).size || ids.every((id) => id.length <= length))
      return new Map(ids.map((id, at) => [id, short[at] ?? id]));
  }
}

type Searched = {
  readonly path: string;
  /** The field of the answer that holds the rows, and what they are called. */
  readonly key: 'approvals' | 'halts';
  readonly query: Query;
};

/** The one of these ids that begins so; without one, what was given, and the gateway says what is wrong with it. */
export async function wholeId(api: Api, id: string, { path, key, query }: Searched): Promise<string> {
  if (id.length < LEAST_ID || id.length >= WHOLE_ID) return id;
  const { rows } = await api.list(path, key, { query });
  const ids = rows.map((row) => String(row.id)).filter((each) => each.startsWith(id));
  if (ids.length > 1)
    throw new CliError(
      `${ids.length} ${key} begin with ${printable(id)}`,
      `They are ${ids.map(printable).join(', ')}.`,
    );
  return ids[0] ?? id;
}
