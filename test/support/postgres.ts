/** Real PostgreSQL databases for a test file, on the server of the run. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { askingPath, connected, databaseAt, layDatabaseOf, TEMPLATE } from './database-server.ts';

/** A folder beside the database that is copied, where a copy is cheapest; it goes with the run at the latest. */
export const folderForDatabase = (): string => mkdtempSync(join(inject('scratch'), 'database-'));

/** Puts an empty database into a data directory, where the start would make one. */
export const layDatabase = (dataDir: string): Promise<void> => layDatabaseOf(inject('scratch'), dataDir);

/**
 * With the tables of this version; or empty, for tests of the migrations and of starting on such a database. Logs of a
 * cluster begin with the same mark in all that have the tables.
 */
export type NewDatabase = (how?: { readonly isEmpty: boolean }) => Promise<string>;

/** Call at the top of a test file. The returned function makes a database and resolves with its URL. */
export function withPostgres(): NewDatabase {
  let server: string;
  const made: string[] = [];
  beforeAll(async () => {
    server = await text(connect(askingPath(inject('scratch'))));
    if (!server.startsWith('postgres:')) throw new Error(`the PostgreSQL of the tests did not start: ${server}`);
  });
  afterAll(async () => {
    for (const name of made) await asked(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  return async ({ isEmpty } = { isEmpty: false }) => {
    const name = `test_${randomUUID().replaceAll('-', '_')}`;
    // As files, because all that is copied would go through the log of the server otherwise, which takes twice as long.
    await asked(server, `CREATE DATABASE ${name} TEMPLATE ${isEmpty ? 'template1' : TEMPLATE} STRATEGY file_copy`);
    made.push(name);
    return databaseAt(server, name);
  };
}

/**
 * As `withPostgres`, for tests that need none of the rows which the migrations make: one that is emptied takes half of
 * what a new one takes.
 */
export function withTables(): () => Promise<string> {
  const newDatabase = withPostgres();
  const emptied: string[] = [];
  return async () => {
    const url = emptied.pop() ?? (await newDatabase());
    // Run last, when the test has closed what it opened; where it has not, the next one gets another.
    onTestFinished(() =>
      empty(url).then(
        () => void emptied.push(url),
        () => undefined,
      ),
    );
    return url;
  };
}

/** In any order: the role says that references are not looked at. */
async function empty(url: string): Promise<void> {
  const tables = await asked(
    url,
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'svc_migrations'",
  );
  await asked(
    url,
    [
      "SET lock_timeout = '1s'",
      'SET session_replication_role = replica',
      ...tables.map(({ tablename }) => `DELETE FROM ${tablename}`),
    ].join('; '),
  );
}

const asked = (server: string, text: string): Promise<readonly Record<string, unknown>[]> =>
  connected(server, async (client) => (await client.query(text)).rows ?? []);
