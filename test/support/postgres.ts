/** A real PostgreSQL for a test file: one server, as many databases as tests ask for. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { startEmbeddedPostgres, type EmbeddedOptions, type EmbeddedPostgres } from '../../src/adapters/store/embedded-postgres.ts';
import type { StoreLog } from '../../src/adapters/store/postgres.ts';
import { onceOrphaned } from './orphans.ts';

export const SILENT: StoreLog = { info: () => undefined, warn: () => undefined };

/** A PostgreSQL of this process, which does not outlive it. */
export async function startTestPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const callOff = onceOrphaned('kill -INT "$(head -n 1 "$1")"', join(options.dataDir, 'postgres', 'cluster', 'postmaster.pid'));
  try {
    const server = await startEmbeddedPostgres(options, SILENT);
    return { ...server, stop: (timeoutMs) => server.stop(timeoutMs).finally(callOff) };
  } catch (error) {
    callOff();
    throw error;
  }
}

/** Call at the top of a test file. The returned function makes an empty database and resolves with its URL. */
export function withPostgres(): () => Promise<string> {
  let dataDir: string;
  let server: EmbeddedPostgres;
  let made = 0;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'svc-postgres-'));
    server = await startTestPostgres({ dataDir, settings: { fsync: 'off', synchronous_commit: 'off' } });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  return async () => {
    const name = `test_${++made}`;
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    const url = new URL(server.url);
    url.pathname = `/${name}`;
    return url.href;
  };
}
