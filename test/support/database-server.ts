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
import type { TestProject } from 'vitest/node';
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
    return startTestPostgres({ dataDir, settings: SETTINGS });
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
