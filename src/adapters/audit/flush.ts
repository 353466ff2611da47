/** Makes written data survive a loss of power. A file that retention has deleted is skipped. */
import { fsyncSync } from 'node:fs';
import { syncFile } from '../durable-file.ts';
import { ifThere, ifThereSync } from '../if-there.ts';
import { withOpenFile } from '../open-file.ts';

/** One after the other, on the thread pool of Node.js: only the caller waits for the disk. */
export async function flushFiles(paths: readonly string[]): Promise<void> {
  for (const path of paths) await ifThere(syncFile(path));
}

/** For a shutdown: the thread waits for the disk. */
export function flushFilesNow(paths: readonly string[]): void {
  for (const path of paths) ifThereSync(() => withOpenFile(path, 'r', fsyncSync));
}
