import { fail, type Result } from './result.ts';

export type CursorFault = { readonly kind: 'invalid_argument'; readonly field: 'cursor'; readonly problem: string };

export const BAD_CURSOR: Result<never, CursorFault> = fail({
  kind: 'invalid_argument',
  field: 'cursor',
  problem: 'is not valid for this list, or no longer valid; start from the first page',
});

/** The number that the cursor of a numbered listing is: 0 without a cursor; undefined for a text that is none. */
export function placeOfCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return 0;
  return /^\d{1,10}$/.test(cursor) ? Number(cursor) : undefined;
}

/** The first `perPage` items, at least one. */
export function firstPage<T>(all: Iterable<T>, perPage: number, cursorAfter: (last: T) => string): Page<T> {
  const items: T[] = [];
  for (const item of all) {
    const last = items.at(-1);
    if (last !== undefined && items.length >= perPage) return { items, next: cursorAfter(last) };
    items.push(item);
  }
  return { items, next: undefined };
}

/** A page of a listing. `next` is the cursor of the next page, undefined on the last one. */
export type Page<T> = { readonly items: readonly T[]; readonly next: string | undefined };

export type PageRequest = { readonly perPage: number; readonly cursor: string | undefined };
