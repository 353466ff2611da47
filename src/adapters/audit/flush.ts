/** Makes written data survive a loss of power. A file that retention has deleted is skipped. */
import { fsyncSync } from 'node:fs';
import { codeOf } from '../../core/error-text.ts';
import { syncFile } from '../durable-file.ts';
import { withOpenFile } from '../open-file.ts';

/** One after the other, on the thread pool of Node.js: only the caller waits for the disk. */
export async function flushFiles(paths: readonly string[]): Promise<void> {
  for (const path of paths) await syncFile(path).catch(throwUnlessDeleted);
}

/** For a shutdown: the thread waits for the disk. */
export function flushFilesNow(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      withOpenFile(path, 'r', fsyncSync);
    } catch (error) {
      throwUnlessDeleted(error);
    }
  }
}

function throwUnlessDeleted(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}
