/** Writes a file atomically: it is either complete or unchanged. */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ifThere } from '../adapters/if-there.ts';
import { codeOf } from '../core/error-text.ts';
import { interruptible } from './interruptible.ts';

/**
 * Writes what `open` brings, readable by its owner only. Rejects with the error of the system or of the source: EEXIST
 * when the file is there and may not be replaced, which is found out before anything is opened, ABORT_ERR when it is
 * interrupted.
 */
export async function writeWhole(path: string, mayReplace: boolean, open: () => Promise<Readable>): Promise<void> {
  const present = await ifThere(stat(path));
  if (present !== undefined && !mayReplace)
    throw Object.assign(new Error(`${path} already exists`), { code: 'EEXIST' });
  // A device or a pipe is written to: nothing may come in its place.
  if (present?.isFile() === false) return pipeline(await open(), createWriteStream(path));
  const target = present === undefined ? path : await realpath(path);
  await writeBeside(target, await open(), (partial) =>
    mayReplace ? rename(partial, target) : linkOrRename(partial, target),
  );
}

/** Writes under a passing name in the same folder, which is gone afterwards, whatever happens. */
async function writeBeside(
  target: string,
  source: Readable,
  publish: (partial: string) => Promise<void>,
): Promise<void> {
  const partial = join(dirname(target), `.svc-${randomBytes(6).toString('hex')}.partial`);
  await interruptible(async (signal) => {
    try {
      await pipeline(source, createWriteStream(partial, { mode: 0o600, flags: 'wx', flush: true }), { signal });
      await publish(partial);
    } finally {
      await rm(partial, { force: true });
    }
  });
}

/** A link replaces nothing that has come meanwhile. Some file systems, as that of a memory stick, have none. */
async function linkOrRename(partial: string, target: string): Promise<void> {
  try {
    await link(partial, target);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error) ?? '')) throw error;
    await rename(partial, target);
  }
}
