/** Makes written data survive a loss of power. A file that retention has deleted is skipped. */
import { fsyncSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../../core/error-text.ts';
import { withOpenFile } from '../open-file.ts';

/** One after the other, on the thread pool of Node.js: only the caller waits for the disk. */
export async function flushFiles(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    try {
      const file = await open(path, 'r');
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
}

export function flushFilesNow(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      withOpenFile(path, 'r', fsyncSync);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
}
