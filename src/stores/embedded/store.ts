import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../core/base/text.ts';
import { type Change, makeStoreFile, StoreDatabase } from './database.ts';
import { StoreWriter } from './writer.ts';

/** The store's file, in the folder `store` of the data directory. */
export const STORE_FILE = 'gateway.sqlite';

/** A row lies under the digest of its own key where that may be of any length and content, as names are. */
export const storedKey = (key: string): string => createHash('sha256').update(key).digest('base64url');

/**
 * A named table of the embedded store. Rows are plain data, as JSON has it. Pending writes are not read before they are
 * on disk, except by transactions.
 */
export type Table<Row> = {
  readonly name: string;
  get(key: string): Row | undefined;
  /** As a transaction of its own. */
  put(key: string, row: Row): Promise<void>;
  remove(key: string): Promise<void>;
  /** In the order of the keys. */
  entries(): Iterable<readonly [string, Row]>;
  /** The first of the entries whose key comes after this one. */
  entriesAfter(key: string, count: number): Iterable<readonly [string, Row]>;
};

export type TableInTransaction<Row> = {
  get(key: string): Row | undefined;
  put(key: string, row: Row): void;
  remove(key: string): void;
  isEmpty(): boolean;
};

/** A table as this transaction and those before it leave it. */
export type Inside = <Row>(table: Table<Row>) => TableInTransaction<Row>;

export type EmbeddedStore = {
  readonly path: string;
  table<Row>(name: string): Table<Row>;
  /**
   * Synchronous reads and writes that nothing comes between. Resolves with what the action returned when it is on disk:
   * it survives `kill -9` and the loss of power. Rejects with `StoreUnwritable`, or with what the action threw; then
   * nothing of it is kept. Transactions that wait meanwhile share one commit.
   */
  transaction<T>(action: (inside: Inside) => T): Promise<T>;
  /** Rejects while the disk of the store is full. */
  probe(): Promise<void>;
  close(): Promise<void>;
};

/** This much must fit before a full disk counts as writable again, or the next commits would fail at once. */
const PROBE_BYTES = 256 * 1024;

/**
 * Opens `<dataDir>/store` (0700). Call it once per process, on the main thread, holding the lock of the data directory.
 * Throws the error of the system, `StoreDamaged` or `StoreOfLaterRelease`.
 */
export function openEmbeddedStore(dataDir: string): EmbeddedStore {
  const folder = join(dataDir, 'store');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const path = join(folder, STORE_FILE);
  makeStoreFile(path);
  const database = new StoreDatabase(path);
  try {
    database.checkPages();
  } catch (error) {
    database.close();
    throw error;
  }
  return storeOn(database, path);
}

function storeOn(database: StoreDatabase, path: string): EmbeddedStore {
  const writer = new StoreWriter(path);
  const transactions = new Transactions(database, writer);
  const probe = join(path, '..', '.probe');
  const parsed = function* <Row>(entries: Iterable<readonly [string, string]>): Generator<readonly [string, Row]> {
    for (const [key, row] of entries) yield [key, JSON.parse(row) as Row];
  };
  return {
    path,
    table: <Row>(name: string): Table<Row> => {
      const table: Table<Row> = {
        name,
        get: (key) => rowOf(database.get(name, key)),
        put: (key, row) => transactions.run((inside) => inside(table).put(key, row)),
        remove: (key) => transactions.run((inside) => inside(table).remove(key)),
        entries: () => parsed<Row>(database.entriesAfter(name, '')),
        entriesAfter: (key, count) => parsed<Row>(database.entriesAfter(name, key, count)),
      };
      return table;
    },
    transaction: (action) => transactions.run(action),
    probe: () => writeFile(probe, new Uint8Array(PROBE_BYTES)).finally(() => rm(probe, { force: true })),
    close: async () => {
      await transactions.settled();
      await writer.close();
      try {
        database.emptyLog(); // else the next start reads what is left in it
      } catch (error) {
        if (codeOf(error) !== 'ENOSPC') throw error;
      } finally {
        database.close();
      }
    },
  };
}

const rowOf = <Row>(text: string | undefined): Row | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as Row);

/** Pending writes of a transaction, by table and key. */
type Writes = Map<string, Change>;
const placeOf = (table: string, key: string): string => `${table}\n${key}`;

type Waiting = {
  readonly action: (inside: Inside) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
};

/**
 * Runs transactions one after the other, here, and has what they wrote committed together by the writing thread. While
 * a commit is on its way, those that come wait: they may have to read what it writes.
 */
class Transactions {
  readonly #database: StoreDatabase;
  readonly #writer: Pick<StoreWriter, 'commit'>;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(database: StoreDatabase, writer: Pick<StoreWriter, 'commit'>) {
    this.#database = database;
    this.#writer = writer;
  }

  run<T>(action: (inside: Inside) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ action, resolve: resolve as (value: unknown) => void, reject });
      this.#running ??= this.#runAll();
    });
  }

  /** Resolves when nothing waits. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #runAll(): Promise<void> {
    await undefined; // for all that come in this turn
    while (this.#waiting.length > 0) await this.#runTogether(this.#waiting.splice(0));
    this.#running = undefined;
  }

  async #runTogether(group: readonly Waiting[]): Promise<void> {
    const writes: Writes = new Map();
    const done: { readonly each: Waiting; readonly value: unknown }[] = [];
    for (const each of group) {
      const own: Writes = new Map();
      try {
        done.push({ each, value: each.action((table) => this.#inside(table.name, writes, own)) });
      } catch (error) {
        each.reject(error);
        continue;
      }
      for (const [place, change] of own) writes.set(place, change);
    }
    try {
      if (writes.size > 0) await this.#writer.commit([...writes.values()]);
      for (const { each, value } of done) each.resolve(value);
    } catch (error) {
      for (const { each } of done) each.reject(error);
    }
  }

  #inside<Row>(table: string, before: Writes, own: Writes): TableInTransaction<Row> {
    const written = (key: string): Change | undefined =>
      own.get(placeOf(table, key)) ?? before.get(placeOf(table, key));
    const write = (key: string, row: string | undefined) => void own.set(placeOf(table, key), [table, key, row]);
    const hasWritten = (writes: Writes): boolean =>
      [...writes.values()].some(([name, key]) => name === table && written(key)?.[2] !== undefined);
    const hasStored = (): boolean => {
      for (const [key] of this.#database.entriesAfter(table, '')) if (written(key) === undefined) return true;
      return false;
    };
    return {
      get: (key) => {
        const change = written(key);
        return rowOf(change === undefined ? this.#database.get(table, key) : change[2]);
      },
      put: (key, row) => write(key, JSON.stringify(row)),
      remove: (key) => write(key, undefined),
      isEmpty: () => !hasWritten(own) && !hasWritten(before) && !hasStored(),
    };
  }
}
