/**
 * A PostgreSQL for tests, without what only a test file can call. As the global setup of a project: one server for all
 * of its files, which starts when the first of them asks for it.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/stores/postgres/migrate.ts';
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

/** Copies the empty database of the run, which the first call makes: a copy takes a tenth of the time. */
export async function layDatabaseOf(scratch: string, dataDir: string): Promise<void> {
  const kept = join(scratch, 'postgres');
  if (!existsSync(kept)) await makeDatabase(scratch, kept);
  await mkdir(join(dataDir, 'postgres'), { recursive: true, mode: 0o700 });
  await promisify(execFile)('cp', ['-a', join(kept, 'password'), join(kept, 'cluster'), join(dataDir, 'postgres')]);
}

async function makeDatabase(scratch: string, kept: string): Promise<void> {
  const dataDir = await mkdtemp(join(scratch, 'making-'));
  await (await startTestPostgres({ dataDir })).stop();
  await rename(join(dataDir, 'postgres'), kept).catch((error: unknown) => {
    if (!existsSync(kept)) throw error; // another test file was faster
  });
}

/** Connects, however long that takes on a busy machine, works, and disconnects. */
export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return work(client).finally(() => client.end());
}

/** A database on the server with the tables of this version. To copy it takes a fifth of the time of making another. */
export const TEMPLATE = 'with_tables';

/** Closed to all, because a database that somebody is connected to cannot be copied. */
async function makeTemplate(server: string): Promise<void> {
  await connected(server, (client) => client.query(`CREATE DATABASE ${TEMPLATE}`));
  await connected(databaseAt(server, TEMPLATE), (client) => migrate(client));
  await connected(server, (client) =>
    client.query(`ALTER DATABASE ${TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`),
  );
}

export const databaseAt = (server: string, name: string): string =>
  Object.assign(new URL(server), { pathname: `/${name}` }).href;

/** The socket that sends the URL of the server to each connection. */
export const askingPath = (scratch: string): string => join(scratch, 'server.sock');

/** As many as the pools of a few files take at once. Nothing is written to outlast the machine. */
const SETTINGS = { fsync: 'off', synchronous_commit: 'off', max_connections: '300' };

export function setup(project: TestProject): () => Promise<void> {
  const { scratch } = project.getProvidedContext();
  let starting: Promise<EmbeddedPostgres> | undefined;
  const start = async (): Promise<EmbeddedPostgres> => {
    const dataDir = await mkdtemp(join(scratch, 'server-'));
    await layDatabaseOf(scratch, dataDir);
    const server = await startTestPostgres({ dataDir, settings: SETTINGS });
    try {
      await makeTemplate(server.url); // before anybody learns of the server, so once
    } catch (error) {
      await server.stop(0);
      throw error;
    }
    return server;
  };
  const asked = createServer((socket) => {
    socket.on('error', () => undefined);
    starting ??= start();
    starting.then(
      ({ url }) => socket.end(url),
      (error: unknown) => socket.end(String(error)),
    );
  }).listen(askingPath(scratch));
  return async () => {
    asked.close();
    await (await starting?.catch(() => undefined))?.stop(0); // without a checkpoint: nobody comes back to it
  };
}
