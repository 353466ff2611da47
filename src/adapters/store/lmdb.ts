import { chmodSync, closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, statfsSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { open, type Database, type Key, type RootDatabase } from 'lmdb';

/** One named table of the embedded store. Rows are plain data; a key orders as text or number does. */
export type Table<K extends Key, Row> = {
  get(key: K): Row | undefined;
  /** Resolves when the row is on disk: it survives `kill -9` and the loss of power. Writes of one turn share one commit. */
  put(key: K, row: Row): Promise<void>;
  remove(key: K): Promise<void>;
  /** In the order of the keys. */
  entries(): Iterable<readonly [K, Row]>;
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
  close(): Promise<void>;
};

const MAX_TABLES = 32;

/** Every file of the library begins with two pages that carry this mark. */
const MARK = Buffer.from([0xde, 0xc0, 0xef, 0xbe]);
const MARK_AT = 24;
const LEAST_BYTES = 2 * 4096;
/** What the files of a new store take. */
const LEAST_FREE_BYTES = 32 * 1024;

/**
 * Where each of its two heads, the first two pages, says how large a page is, where the list of free pages and the tables begin,
 * which the last page is, and which head is newer.
 */
const PAGE_SIZE_AT = 48;
const ROOTS_AT = [88, 136] as const;
const LAST_PAGE_AT = 144;
const TURN_AT = 152;
const HEAD_BYTES = TURN_AT + 8;
/** In place of a page, where there is none yet. */
const EMPTY = 0xffff_ffff_ffff_ffffn;
const MAX_PAGE_BYTES = 65_536;

/**
 * The file of the store where it is none: cut short by a full disk or a copy that broke off, or written over. Ask before opening
 * it: the library maps it into memory as it is, and the process dies of that without a word.
 */
export async function damagedStoreFile(dataDir: string): Promise<string | undefined> {
  const folder = join(dataDir, 'store');
  const path = join(folder, 'data.mdb');
  if (!existsSync(path)) return undefined;
  const { size, start } = readStart(path);
  if (size === 0) return undefined;
  if (size < LEAST_BYTES || !start.subarray(MARK_AT, MARK_AT + MARK.length).equals(MARK)) return path;
  const claim = claimOf(start);
  if (claim === undefined || size < claim.leastSize) return path;
  return size >= claim.wholeSize || await isSoundWithout(folder, path, size, claim.wholeSize) ? undefined : path;
}

/** Its length, and its first page with the head of the second. */
function readStart(path: string): { readonly size: number; readonly start: Buffer } {
  const fd = openSync(path, 'r');
  try {
    const start = Buffer.alloc(MAX_PAGE_BYTES + HEAD_BYTES);
    readSync(fd, start, 0, start.length, 0);
    return { size: fstatSync(fd).size, start };
  } finally {
    closeSync(fd);
  }
}

/** How long it is with every page that it has given a number to, and with those that all others hang on; undefined where it says what cannot be. */
function claimOf(start: Buffer): { readonly wholeSize: number; readonly leastSize: number } | undefined {
  const pageBytes = start.readUInt32LE(PAGE_SIZE_AT);
  if (pageBytes < HEAD_BYTES || pageBytes > MAX_PAGE_BYTES) return undefined;
  const newer = start.readBigUInt64LE(TURN_AT) > start.readBigUInt64LE(pageBytes + TURN_AT) ? 0 : pageBytes;
  const roots = ROOTS_AT.map((at) => start.readBigUInt64LE(newer + at)).filter((root) => root !== EMPTY);
  const endOf = (page: bigint): number => (Number(page) + 1) * pageBytes;
  return { wholeSize: endOf(start.readBigUInt64LE(newer + LAST_PAGE_AT)), leastSize: Math.max(0, ...roots.map(endOf)) };
}

/**
 * The last pages may never have been written, where they were free again when the library came to it. So the file is made as long
 * as it should be, of which a sound one takes no harm, and all of it is read: of zeros in place of what is used, the library says so.
 */
async function isSoundWithout(folder: string, path: string, size: number, wholeSize: number): Promise<boolean> {
  let isSound = false;
  truncateSync(path, wholeSize);
  try {
    isSound = await isReadable(folder);
  } finally {
    if (!isSound) truncateSync(path, size); // as it was found
  }
  return isSound;
}

async function isReadable(folder: string): Promise<boolean> {
  const environment = openEnvironment(folder);
  try {
    for (const name of [...environment.getKeys()]) for (const row of environment.openDB({ name: String(name) }).getRange()) void row;
    return true;
  } catch {
    return false; // said by whoever asked
  } finally {
    await environment.close();
  }
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** Opens `<dataDir>/store` (0700). Call it once per process, on the main thread, holding the lock of the data directory. */
export function openEmbeddedStore(dataDir: string): EmbeddedStore {
  const path = join(dataDir, 'store');
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
  const environment = openEnvironment(path);
  process.on('unhandledRejection', passOverFailedCommit);
  return {
    table: (name) => tableOf(environment.openDB({ name })),
    close: async () => {
      await environment.close();
      process.off('unhandledRejection', passOverFailedCommit);
    },
  };
}

function openEnvironment(path: string): RootDatabase<unknown, Key> {
  // The library has an error for data that it may not write; of a lock file that it may not, the process dies without a word.
  const lock = join(path, 'lock.mdb');
  if (existsSync(lock)) closeSync(openSync(lock, 'r+'));
  // Nor has it a word for one that has no room: it maps the file into memory before there are blocks for it.
  else if (freeBytes(path) < LEAST_FREE_BYTES) throw Object.assign(new Error('no space left for the store'), { code: 'ENOSPC', path: lock });
  // Without overlapping sync a commit is reported only after it is flushed, which is what `put` promises.
  return open({ path, maxDbs: MAX_TABLES, overlappingSync: false });
}

/**
 * A commit that fails, on a full disk say, rejects what its callers wait for, and they deal with it. But the library also
 * rejects promises of its own, and Node.js ends the process for one that nobody handles. Any other ends it as before.
 */
function passOverFailedCommit(reason: unknown): void {
  if (!isFailedCommit(reason)) throw reason;
}

/** `commitError` rejects with the cause, which the library writes to standard error. */
const isFailedCommit = (error: unknown): error is Error & { readonly commitError: Promise<unknown> } =>
  error instanceof Error && 'commitError' in error && error.commitError instanceof Promise;

async function committed<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (isFailedCommit(error)) error.commitError.catch(() => undefined); // this error says as much
    throw error;
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
    entries: () => database.getRange().map(({ key, value }) => [key, value] as const),
    // A child transaction is undone when the action throws; a plain one would keep the half that was written.
    transaction: (action) => committed(database.childTransaction(() => action(inTransaction))),
  };
}
