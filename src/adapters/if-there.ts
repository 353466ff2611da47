import { readFileSync } from 'node:fs';
import { codeOf } from '../core/error-text.ts';

/**
 * What `reading` resolves with; undefined if the file or folder does not exist. Rejects with any other system error.
 */
export const ifThere = <T>(reading: Promise<T>): Promise<T | undefined> => reading.catch(undefinedWhereMissing);

export function ifThereSync<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return undefinedWhereMissing(error);
  }
}

export const textIfThereSync = (path: string): string | undefined => ifThereSync(() => readFileSync(path, 'utf8'));

function undefinedWhereMissing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}
