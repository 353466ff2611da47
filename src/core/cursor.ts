import { fail, type Result } from './result.ts';

export type CursorFault = { readonly kind: 'invalid_argument'; readonly field: 'cursor'; readonly problem: string };

export const BAD_CURSOR: Result<never, CursorFault> = fail({ kind: 'invalid_argument', field: 'cursor', problem: 'is not one this listing gave out' });

/** Where a listing that counts goes on: 0 without a cursor; undefined for a cursor that is no number. */
export function numberOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return 0;
  return /^\d{1,10}$/.test(cursor) ? Number(cursor) : undefined;
}
