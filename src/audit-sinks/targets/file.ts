/** Appends entries to a file, and has them on the disk before they count. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { SinkEntry, SinkTarget } from '../sink.ts';

/** Opened for each batch, so that a file which was moved away is made anew. A pipe without a reader does not block. */
const FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const LINE_FEED = 10;

export function fileTarget(path: string, render: (entry: SinkEntry) => string): SinkTarget {
  const opened = async <T>(use: (file: FileHandle) => Promise<T>): Promise<T> => {
    const file = await open(path, FLAGS, 0o640);
    try {
      if (!(await file.stat()).isFile()) throw new Error(`${path} is not a regular file`);
      return await use(file);
    } finally {
      await file.close();
    }
  };
  return {
    rewindMs: 0,
    send: (entries) =>
      opened(async (file) => {
        const lines = entries.map((entry) => `${render(entry)}\n`).join('');
        await file.appendFile((await isTorn(file)) ? `\n${lines}` : lines);
        await file.datasync();
      }),
    test: () => opened(async () => undefined),
  };
}

/** Whether a crash has cut a line, which must not swallow the next one. */
async function isTorn(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== LINE_FEED;
}
