import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { codeOf } from '../core/error-text.ts';

/** Undefined when there is nothing of that name; rejects with any other error of the system. */
export async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
