/** Real PostgreSQL databases for a test file, on the server of the run. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { askingPath, layDatabaseOf } from './database-server.ts';

/** Puts an empty database into a data directory, where the start would make one. */
export const layDatabase = (dataDir: string): Promise<void> => layDatabaseOf(inject('scratch'), dataDir);

/** Call at the top of a test file. The returned function makes an empty database and resolves with its URL. */
export function withPostgres(): () => Promise<string> {
  let server: URL;
  const made: string[] = [];
  beforeAll(async () => {
    server = new URL(await text(connect(askingPath(inject('scratch')))));
  });
  afterAll(async () => {
    for (const name of made) await asked(server.href, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  return async () => {
    const name = `test_${randomUUID().replaceAll('-', '_')}`;
    await asked(server.href, `CREATE DATABASE ${name}`);
    made.push(name);
    const url = new URL(server);
    url.pathname = `/${name}`;
    return url.href;
  };
}

/**
 * As `withPostgres`, for tests to which it is all one whether the tables are there already: one that is emptied takes a
 * twentieth of what a new one takes.
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

async function asked(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client
    .query(text)
    .then(({ rows }) => rows ?? [])
    .finally(() => client.end());
}
