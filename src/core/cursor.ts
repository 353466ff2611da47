import { fail, type Result } from './result.ts';

export type CursorFault = { readonly kind: 'invalid_argument'; readonly field: 'cursor'; readonly problem: string };

export const BAD_CURSOR: Result<never, CursorFault> = fail({ kind: 'invalid_argument', field: 'cursor', problem: 'is not one this listing gave out' });

/** Reads the cursor of a listing that goes on from a number; undefined when the text is not one. */
export function numberOf(cursor: string): number | undefined {
  return /^\d{1,10}$/.test(cursor) ? Number(cursor) : undefined;
}
