import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { resolve as absolute, basename, dirname, join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fail, ok, type Result } from '../../core/base/result.ts';
import { codeOf } from '../../core/base/text.ts';

export type DataDirLock = { release(): Promise<void> };
export type DataDirInUse = { readonly kind: 'data_dir_in_use'; readonly path: string; readonly holder: string };

const ANSWER_TIMEOUT_MS = 1000;
const SETTLE_MS = 20;

/**
 * Makes this process the only gateway on a data directory, for as long as it lives. The lock is a listening socket:
 * the kernel gives it up with the process, however that ends, and unlike a file of process ids it also holds between
 * containers that share the directory.
 */
export async function lockDataDir(dataDir: string): Promise<Result<DataDirLock, DataDirInUse>> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const folder = absolute(dataDir);
  const path = join(folder, 'lock');
  const own = join(folder, `.lock-${randomBytes(4).toString('hex')}`);
  const server = await listen(own);
  const inode = inodeOf(own);
  let isOurs = false;
  try {
    const holder = await contend(own, path);
    if (holder !== undefined) return fail({ kind: 'data_dir_in_use', path: dataDir, holder });
    isOurs = true;
  } finally {
    rmSync(own, { force: true });
    if (!isOurs) await closed(server);
  }
  return ok({
    release: async () => {
      if (inodeOf(path) === inode) rmSync(path, { force: true });
      await closed(server);
    },
  });
}

/** Links `own` to `path`; resolves with who holds that already, undefined when it is ours. */
async function contend(own: string, path: string): Promise<string | undefined> {
  const inode = inodeOf(own);
  for (;;) {
    // A link appears complete or not at all, so of two gateways that start at once exactly one gets the name.
    if (linked(own, path)) {
      // Another may have been about to clear away a stale lock, and cleared this one. If so, it has done it by now.
      await setTimeout(SETTLE_MS);
      if (inodeOf(path) === inode) return undefined;
    }
    const present = inodeOf(path);
    const holder = present === undefined ? undefined : await queryHolder(path);
    if (holder !== undefined) return holder;
    // The lock that was asked is still there: its holder died, and nobody has replaced it.
    if (present !== undefined && inodeOf(path) === present) rmSync(path, { force: true });
  }
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

const MAX_SOCKET_PATH_BYTES = 100; // the kernel takes 103 or 107

/**
 * The same file under a path that is short enough for a socket: as it is, from here, or through a link made for `use`.
 */
async function withShortPath<T>(path: string, use: (shortPath: string) => Promise<T>): Promise<T> {
  const short = [path, relative(process.cwd(), path)].find(
    (candidate) => Buffer.byteLength(candidate) <= MAX_SOCKET_PATH_BYTES,
  );
  if (short !== undefined) return use(short);
  const folder = mkdtempSync(join(tmpdir(), 'svc-'));
  try {
    symlinkSync(dirname(path), join(folder, 'data'));
    return await use(join(folder, 'data', basename(path)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const listen = (path: string): Promise<Server> => withShortPath(path, (shortPath) => listenAt(shortPath));

function listenAt(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy()); // the client hung up and needs no answer
      socket.end(String(process.pid), () => socket.destroy()); // a stalled client does not keep the lock
    });
    server.once('error', reject);
    server.listen(path, () => {
      server.unref();
      resolve(server);
    });
  });
}

const closed = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/**
 * `process <id>` of the gateway that listens there; undefined when nobody does. A holder too busy to answer still
 * holds.
 */
const queryHolder = (path: string): Promise<string | undefined> =>
  withShortPath(path, (shortPath) => queryHolderAt(shortPath));

function queryHolderAt(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    let answer = '';
    const holds = () => {
      socket.destroy();
      resolve(answer === '' ? 'another process' : `process ${answer}`);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, holds);
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.once('end', holds);
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      code === 'ECONNREFUSED' || code === 'ENOENT' ? resolve(undefined) : holds(),
    );
  });
}
