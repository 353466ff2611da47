import { createHash } from 'node:crypto';
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statfsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Database, type Key, open, type RootDatabase } from 'lmdb';
import { StoreUnwritable } from '../../ports/ports.ts';
import { within } from '../../system/clock.ts';

/**
 * Keys of the embedded store are limited in bytes and names are not that short, so a row lies under the digest of its
 * own key.
 */
export const storedKey = (key: string): string => createHash('sha256').update(key).digest('base64url');

/** One named table of the embedded store. Rows are plain data; a key orders as text or number does. */
export type Table<K extends Key, Row> = {
  get(key: K): Row | undefined;
  /**
   * Resolves when the row is on disk: it survives `kill -9` and the loss of power. Writes of one turn share one commit.
   */
  put(key: K, row: Row): Promise<void>;
  remove(key: K): Promise<void>;
  /** In the order of the keys. */
  entries(): Iterable<readonly [K, Row]>;
  /** The first of the entries whose key comes after this one. */
  entriesAfter(key: K, count: number): Iterable<readonly [K, Row]>;
  /**
   * Synchronous reads and writes that nothing comes between. Resolves with what the action returned when it is on
   * disk; when the action throws, nothing of it is kept. Tables of one store may be used together in one action.
   */
  transaction<T>(action: (table: TableInTransaction<K, Row>) => T): Promise<T>;
};

export type TableInTransaction<K extends Key, Row> = {
  get(key: K): Row | undefined;
  put(key: K, row: Row): void;
  remove(key: K): void;
  isEmpty(): boolean;
};

export type EmbeddedStore = {
  table<K extends Key, Row>(name: string): Table<K, Row>;
  /**
   * Rejects while the disk of the store is full. It writes a separate file, because for a failed commit the library
   * prints half a line.
   */
  probe(): Promise<void>;
  close(): Promise<void>;
};

const MAX_TABLES = 32;
const PROBE_BYTES = 256 * 1024;

/** The size of a new store's files. With less free space, the library reports a failing disk, or the process dies. */
const LEAST_FREE_BYTES = 40 * 1024;

/**
 * Opens `<dataDir>/store` (0700). Call it once per process, on the main thread, holding the lock of the data directory.
 */
export function openEmbeddedStore(dataDir: string): EmbeddedStore {
  const path = join(dataDir, 'store');
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
  const environment = openEnvironment(path);
  process.on('unhandledRejection', passOverFailedCommit);
  const original = console.error;
  console.error = (...parts: unknown[]) => {
    if (!isCauseOfFailedCommit(parts)) original(...parts);
  };
  const probe = join(path, '.probe');
  return {
    table: (name) => tableOf(environment.openDB({ name })),
    probe: () => writeFile(probe, new Uint8Array(PROBE_BYTES)).finally(() => rm(probe, { force: true })),
    close: async () => {
      await environment.close();
      console.error = original;
      process.off('unhandledRejection', passOverFailedCommit);
    },
  };
}

/** The library's part of a store in this folder, without the tables. */
export function openEnvironment(path: string): RootDatabase<unknown, Key> {
  // The library reports an unwritable data file, but an unwritable lock file crashes the process without a message.
  const lock = join(path, 'lock.mdb');
  if (existsSync(lock)) closeSync(openSync(lock, 'r+'));
  // So does a lock file for which there is no space: the library maps it into memory before its blocks are allocated.
  else if (freeBytes(path) < LEAST_FREE_BYTES)
    throw Object.assign(new Error('no space left for the store'), { code: 'ENOSPC', path: lock });
  // Without overlapping sync a commit is reported only after it is flushed, which is what `put` promises.
  return open({ path, maxDbs: MAX_TABLES, overlappingSync: false });
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/**
 * Who waits for a commit that fails, on a full disk for instance, gets a `StoreUnwritable` and deals with it. But the
 * library also rejects promises of its own, and Node.js ends the process for a rejection that nobody handles. Any other
 * still ends it.
 */
function passOverFailedCommit(reason: unknown): void {
  if (!isFailedCommit(reason)) throw reason;
}

/**
 * The library prints this to standard error for each failed commit. The caller that waits for the commit logs the
 * failure.
 */
const isCauseOfFailedCommit = ([error, ...others]: readonly unknown[]): boolean =>
  others.length === 0 &&
  error instanceof Error &&
  'code' in error &&
  typeof error.code === 'number' &&
  /[/\\]lmdb[/\\]/.test(error.stack ?? '');

/** `commitError` rejects with the cause, or never: the library forgets it where another transaction follows at once. */
const isFailedCommit = (error: unknown): error is Error & { readonly commitError: Promise<unknown> } =>
  error instanceof Error && 'commitError' in error && error.commitError instanceof Promise;

const CAUSE_WAIT_MS = 1_000;
/** An error of the store is known by having a number; this one is none of the system's. */
const UNTOLD = Object.assign(new Error('a commit failed for an unknown reason'), { code: 0 });

async function committed<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isFailedCommit(error)) throw error;
    const cause = await within(
      CAUSE_WAIT_MS,
      error.commitError.catch((reason: unknown) => reason),
    );
    throw new StoreUnwritable(cause ?? UNTOLD);
  }
}

function tableOf<K extends Key, Row>(database: Database<Row, K>): Table<K, Row> {
  const inTransaction = {
    get: (key: K) => database.get(key),
    put: (key: K, row: Row) => void database.put(key, row),
    remove: (key: K) => void database.remove(key),
    isEmpty: () => database.getKeysCount({ limit: 1 }) === 0,
  };
  return {
    get: (key) => database.get(key),
    put: async (key, row) => {
      await committed(database.put(key, row));
    },
    remove: async (key) => {
      await committed(database.remove(key));
    },
    entriesAfter: (start, limit) =>
      database.getRange({ start, exclusiveStart: true, limit }).map(({ key, value }) => [key, value] as const),
    entries: () => database.getRange().map(({ key, value }) => [key, value] as const),
    // A child transaction is undone when the action throws; a plain one would keep the half that was written.
    transaction: (action) => committed(database.childTransaction(() => action(inTransaction))),
  };
}
