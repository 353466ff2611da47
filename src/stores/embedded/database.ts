import { closeSync, existsSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
// The database of node:sqlite, which Node.js 20 does not have, by the same interface; binaries come with the package.
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { assert } from '../../core/base/result.ts';

/** Undefined in place of the row: it is removed. */
export type Change = readonly [table: string, key: string, row: string | undefined];

/** The file is damaged: it is no database, has wrong pages, or rows that are not what was written. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged';
  readonly path: string;

  constructor(path: string, detail: string) {
    super(`${path} is damaged (${detail})`);
    this.path = path;
  }
}

/** The file was written by a later release. */
export class StoreOfLaterRelease extends Error {
  override readonly name = 'StoreOfLaterRelease';

  constructor(path: string, version: number) {
    super(`${path} has layout ${version}, but this release supports only ${LAYOUT}`);
  }
}

/** Increase it with every change of the tables below, and upgrade files with an earlier one. */
const LAYOUT = 1;
/** Rows that are read at once. Each call of the library costs more than a row. */
const PAGE_ROWS = 250;
/** Two connections of this process meet only while one of them opens or closes the file. */
const BUSY_MS = 5_000;

const SCHEMA = `
  CREATE TABLE rows (
    "table" TEXT NOT NULL,
    key TEXT NOT NULL,
    row TEXT NOT NULL, -- JSON
    sum INTEGER NOT NULL, -- CRC-32 of table, key, tab and row
    PRIMARY KEY ("table", key)
  ) STRICT, WITHOUT ROWID;
  PRAGMA user_version = ${LAYOUT};`;

/** In the order of the file, without sorting: a row that is out of order comes between those of another table. */
const TABLES = 'SELECT DISTINCT "table" AS name FROM rows';
const GET = 'SELECT row, sum FROM rows WHERE "table" = ? AND key = ?';
const PAGE = `
  SELECT max(key) AS last, group_concat(sum || char(9) || key || char(9) || row, char(10)) AS lines
    FROM (SELECT key, row, sum FROM rows WHERE "table" = ? AND key > ? ORDER BY key LIMIT ?)`;
const PUT = `
  INSERT INTO rows ("table", key, row, sum) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET row = excluded.row, sum = excluded.sum`;
const REMOVE = 'DELETE FROM rows WHERE "table" = ? AND key = ?';

/**
 * Makes the file, readable only by its owner, or throws what the system says where it cannot be written; the library
 * says only that it cannot be opened. Call it before the first connection: closing a file ends all locks of the process
 * on it.
 */
export function makeStoreFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  for (const other of [`${path}-wal`, `${path}-shm`]) if (existsSync(other)) closeSync(openSync(other, 'r+'));
}

/**
 * A connection to the file of the embedded store. Everything is synchronous. SQLite finds damage in the structure of
 * its pages; the sum of each row finds it in their content.
 */
export class StoreDatabase {
  readonly #path: string;
  readonly #database: DatabaseSyncInstance;
  readonly #statements = new Map<string, StatementSyncInstance>();
  /** Starting values for the checksums of a table's rows. */
  readonly #seeds = new Map<string, number>();

  /**
   * Makes the file if it is not there. Throws the error of the system, `StoreDamaged` or `StoreOfLaterRelease`; then
   * nothing stays open.
   */
  constructor(path: string) {
    this.#path = path;
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS });
    try {
      this.#attempt(() => this.#prepare());
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Throws `StoreDamaged` where pages or the order of rows are. Call it before the first row is read. */
  checkPages(): void {
    const [first] = this.#attempt(() => this.#database.prepare('PRAGMA quick_check(1)').all());
    const verdict = first === undefined ? 'no verdict' : String(Object.values(first)[0]);
    if (verdict !== 'ok') throw new StoreDamaged(this.#path, verdict.replaceAll(/\s+/g, ' '));
    this.#checkTables();
  }

  /** A row whose table name is misspelt by damage is not missed by its table: it is found as a table of its own. */
  #checkTables(): void {
    const found = this.#attempt(() => this.#database.prepare(TABLES).all()).map(({ name }) => String(name));
    if (new Set(found).size < found.length) throw new StoreDamaged(this.#path, 'rows are out of order');
    for (const table of found)
      if ([...this.entriesAfter(table, '', 1)].length === 0)
        throw new StoreDamaged(this.#path, 'a row cannot be found');
  }

  get(table: string, key: string): string | undefined {
    const found = this.#attempt(() => this.#statement(GET).get(table, key));
    if (found === undefined) return undefined;
    const row = String(found['row']);
    this.#checkSum(table, `${key}\t${row}`, found['sum']);
    return row;
  }

  /** The entries whose key comes after this one, in the order of the keys. */
  *entriesAfter(table: string, key: string, count = Number.POSITIVE_INFINITY): Generator<readonly [string, string]> {
    let left = count;
    for (let after = key; left > 0; left -= PAGE_ROWS) {
      const found = this.#attempt(() => this.#statement(PAGE).get(table, after, Math.min(left, PAGE_ROWS)));
      if (typeof found?.['lines'] !== 'string') return;
      for (const line of found['lines'].split('\n')) {
        const sumEnd = line.indexOf('\t');
        const keyEnd = line.indexOf('\t', sumEnd + 1);
        this.#checkSum(table, line.slice(sumEnd + 1), Number(line.slice(0, sumEnd)));
        yield [line.slice(sumEnd + 1, keyEnd), line.slice(keyEnd + 1)];
      }
      after = String(found['last']);
    }
  }

  /** All of them or none. When this returns, they survive `kill -9` and the loss of power. */
  commit(changes: Iterable<Change>): void {
    this.#attempt(() => {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        for (const [table, key, row] of changes) {
          if (row === undefined) this.#statement(REMOVE).run(table, key);
          else this.#statement(PUT).run(table, key, row, this.#sumOf(table, key, row));
        }
        this.#database.exec('COMMIT');
      } catch (error) {
        // A full disk may have ended the transaction already.
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw error;
      }
    });
  }

  /** Moves what the log of writes holds into the file itself. False where another process is reading it. */
  emptyLog(): boolean {
    const found = this.#attempt(() => {
      this.#database.exec('PRAGMA busy_timeout = 0');
      return this.#database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    });
    return found?.['busy'] === 0;
  }

  /** Leaves the log of writes as it is: the library keeps a file open until its statements are collected. */
  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #prepare(): void {
    // Reading does not wait for writing; a commit waits for the disk, on macOS for its cache, too.
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
    const version = Number(this.#database.prepare('PRAGMA user_version').get()?.['user_version']);
    if (version > LAYOUT) throw new StoreOfLaterRelease(this.#path, version);
    if (version === 0) this.#database.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`);
  }

  #statement(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #checkSum(table: string, keyAndRow: string, sum: unknown): void {
    if (crc32(keyAndRow, this.#seedOf(table)) !== sum)
      throw new StoreDamaged(this.#path, 'a row is not as it was written');
  }

  /** Rows are read as lines, so a key has no tab or line feed; JSON has none outside of its escapes. */
  #sumOf(table: string, key: string, row: string): number {
    assert(!/[\t\n]/.test(key), 'a key of the store is a single word');
    return crc32(`${key}\t${row}`, this.#seedOf(table));
  }

  #seedOf(table: string): number {
    const known = this.#seeds.get(table);
    if (known !== undefined) return known;
    const seed = crc32(table);
    this.#seeds.set(table, seed);
    return seed;
  }

  #attempt<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** Errors of the library as those of the system that start and log have words for. */
  #explained(error: unknown): unknown {
    const { errcode, message } = Object(error) as { readonly errcode?: unknown; readonly message?: string };
    if (typeof errcode !== 'number') return error;
    const primary = errcode & 0xff;
    if (primary === SQLITE_CANTOPEN) return systemErrorAt(dirname(this.#path)) ?? error;
    if (primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB)
      return new StoreDamaged(this.#path, message ?? 'no database');
    const code = errcode === SQLITE_IOERR_SHMSIZE ? 'ENOSPC' : SYSTEM_CODES[primary];
    return code === undefined ? error : Object.assign(new Error(message, { cause: error }), { code, path: this.#path });
  }
}

/** Why nothing can be opened beside the file, such as too many open files. */
function systemErrorAt(folder: string): unknown {
  try {
    closeSync(openSync(folder, 'r'));
    return undefined;
  } catch (error) {
    return error;
  }
}

const SQLITE_CANTOPEN = 14;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** There is no room for the index of the log of writes. */
const SQLITE_IOERR_SHMSIZE = 4874;
const SYSTEM_CODES: Readonly<Record<number, string>> = { 3: 'EACCES', 8: 'EROFS', 10: 'EIO', 13: 'ENOSPC' };
