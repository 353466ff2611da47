/** How far a sink is, in the data directory: what comes after it is sent after any restart. */
import { join } from 'node:path';
import { mappingIn } from '../core/base/mapping.ts';
import { replaceFileSync, textIfThereSync } from '../system/files.ts';

export type Cursor = {
  /** The last entry that the receiver has; 0: none. */
  readonly id: number;
  /** Its hash; undefined where that is not known. */
  readonly hash: string | undefined;
};

export const cursorPath = (folder: string, name: string): string => join(folder, `${name}.json`);

/** `damaged`: it was there, and cannot be read. */
export function readCursor(path: string): Cursor | 'damaged' | undefined {
  const text = textIfThereSync(path);
  if (text === undefined) return undefined;
  const { id, hash } = mappingIn(text) ?? {};
  return isCount(id) ? { id, hash: typeof hash === 'string' ? hash : undefined } : 'damaged';
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

export const writeCursor = (path: string, cursor: Cursor): void => replaceFileSync(path, `${JSON.stringify(cursor)}\n`);
