/** A real PostgreSQL for a test file: one server, as many databases as tests ask for. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/stores/trial-postgres/trial-postgres.ts';
import type { TroubleLog } from '../../src/system/log.ts';
import { onceOrphaned } from './orphans.ts';

export const SILENT: TroubleLog = { info: () => undefined, warn: () => undefined };

/** A PostgreSQL of this process, which does not outlive it. */
export async function startTestPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const callOff = onceOrphaned(
    'kill -INT "$(head -n 1 "$1")"',
    join(options.dataDir, 'postgres', 'cluster', 'postmaster.pid'),
  );
  try {
    const server = await startEmbeddedPostgres(options, SILENT);
    return { ...server, stop: (timeoutMs) => server.stop(timeoutMs).finally(callOff) };
  } catch (error) {
    callOff();
    throw error;
  }
}

/**
 * Puts an empty database into a data directory, where the start would make one: a copy of the first takes a tenth of
 * the time.
 */
export async function layDatabase(dataDir: string): Promise<void> {
  const kept = join(inject('scratch'), 'postgres');
  if (!existsSync(kept)) await makeDatabase(kept);
  await mkdir(join(dataDir, 'postgres'), { recursive: true, mode: 0o700 });
  await promisify(execFile)('cp', ['-a', join(kept, 'password'), join(kept, 'cluster'), join(dataDir, 'postgres')]);
}

async function makeDatabase(kept: string): Promise<void> {
  const dataDir = await mkdtemp(join(inject('scratch'), 'making-'));
  await (await startTestPostgres({ dataDir })).stop();
  await rename(join(dataDir, 'postgres'), kept).catch((error: unknown) => {
    if (!existsSync(kept)) throw error; // another test file was faster
  });
}

/** Call at the top of a test file. The returned function makes an empty database and resolves with its URL. */
export function withPostgres(): () => Promise<string> {
  let dataDir: string;
  let server: EmbeddedPostgres;
  let made = 0;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(inject('scratch'), 'server-'));
    await layDatabase(dataDir);
    server = await startTestPostgres({ dataDir, settings: { fsync: 'off', synchronous_commit: 'off' } });
  });
  afterAll(async () => {
    await server?.stop(0); // without a checkpoint: nobody comes back to it
    await rm(dataDir, { recursive: true, force: true });
  });
  return async () => {
    const name = `test_${++made}`;
    await asked(server.url, `CREATE DATABASE ${name}`);
    const url = new URL(server.url);
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
