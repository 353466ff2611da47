/** Reads lists of the API as pages. */
import { type Query, queryOf } from '../base/request.ts';
import { call } from '../session/session.ts';
import type { Page } from './resource.ts';

/** A function that reads one page of `path`, whose rows are under `name`. */
export const pageReader =
  <T>(path: string, name: string, query: Query = {}) =>
  async (cursor: string | undefined, perPage: number): Promise<Page<T>> => {
    const whole = await call('GET', `${path}${queryOf({ ...query, per_page: perPage, cursor })}`);
    return { rows: whole[name], next: whole.next_cursor, whole };
  };

/** All rows, up to so many pages of a thousand. */
export async function readAll<T>(path: string, name: string, query: Query = {}, maxPages = 5): Promise<readonly T[]> {
  const read = pageReader<T>(path, name, query);
  let page = await read(undefined, 1_000);
  let rows = page.rows;
  for (let at = 1; at < maxPages && page.next !== null; at += 1) {
    page = await read(page.next, 1_000);
    rows = [...rows, ...page.rows];
  }
  return rows;
}
