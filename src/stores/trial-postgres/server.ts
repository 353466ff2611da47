/** Starts the program of the embedded PostgreSQL on a cluster, waits until it answers, and stops it. */
import type { ChildProcess } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { ifThere } from '../../system/files.ts';
import type { PostgresBinaries } from './binaries.ts';
import { type RunAs, spawnAs } from './user.ts';

export const USER = 'svc';
export const DATABASE = 'svc';

const START_TIMEOUT_MS = 60_000; // recovery after a crash replays the log first
export const STOP_TIMEOUT_MS = 15_000;
/** A server that does not end when asked to is killed after this time, in milliseconds. */
const KILL_AFTER_MS = 500;
const POLL_MS = 50;
/** PostgreSQL's word for it. */
const WRONG_PASSWORD = '28P01';
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/** The folders of the embedded PostgreSQL, and how it runs. */
export type Home = {
  readonly root: string;
  readonly cluster: string;
  readonly logFile: string;
  readonly password: string;
  readonly binaries: PostgresBinaries;
  readonly runAs: RunAs;
  readonly settings: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
};

/** It ended instead of answering. */
export class ServerEnded extends Error {}

/** Resolves once it answers; rejects, with nothing left running, in words for the operator. */
export async function startServer(home: Home, port: number): Promise<ChildProcess> {
  const settings = Object.entries({ ...home.settings, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const log = await openLog(home.logFile);
  const { size: logStart } = await log.stat();
  const server = spawnAs(home.runAs, home.binaries.postgres, ['-D', home.cluster, ...settings], {
    cwd: home.root,
    env: environment(),
    stdio: ['ignore', log.fd, log.fd],
    // A terminal's Ctrl-C is for the gateway, which stops its database last.
    detached: true,
  });
  // A gateway that exits without having stopped it tries to stop it then, if there is time.
  const takeAlong = (): void => void server.kill('SIGINT');
  process.once('exit', takeAlong);
  server.once('exit', () => process.off('exit', takeAlong));
  const failed = new Promise<never>((_, reject) => server.once('error', reject));
  failed.catch(() => undefined); // after the start, the keeper watches
  await log.close();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(home.signal?.reason as Error);
  });
  home.signal?.addEventListener('abort', abort);
  try {
    await Promise.race([failed, aborted, untilItAnswers(home, port, server, logStart)]);
  } catch (error) {
    await stopServer(server, 0);
    throw error;
  } finally {
    home.signal?.removeEventListener('abort', abort);
  }
  return server;
}

async function untilItAnswers(home: Home, port: number, server: ChildProcess, logStart: number): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (server.pid !== undefined && server.exitCode === null && server.signalCode === null) {
    home.signal?.throwIfAborted();
    try {
      await withClient(urlOf(home, port, 'postgres'), (client) => client.query('SELECT 1'));
      return;
    } catch (error) {
      if (codeOf(error) === WRONG_PASSWORD && (await isReady(home.cluster, server.pid)))
        throw new Error(
          `the embedded PostgreSQL rejects the password in ${join(home.root, 'password')}; restore that file from the same backup as ${home.cluster}`,
        );
      if (performance.now() > deadline)
        throw new Error(`the embedded PostgreSQL does not respond: ${messageOf(error)}`);
      await pause(POLL_MS);
    }
  }
  throw new ServerEnded(
    `the embedded PostgreSQL did not start (exit status ${server.exitCode ?? server.signalCode}${await lastWords(home.logFile, logStart)}); its log is ${home.logFile}`,
  );
}

/** Its last log output, as `: …`; empty if there is none. */
async function lastWords(logFile: string, start: number): Promise<string> {
  const output = (await readFile(logFile)).subarray(start).toString('utf8');
  const words = /^.*(?:FATAL|PANIC|postgres): +(.+)$/m.exec(output)?.[1];
  return words === undefined ? '' : `: ${words}`;
}

/** Whether it is this server that answers, and not another that has taken its port. */
async function isReady(cluster: string, pid: number): Promise<boolean> {
  const lines = (await textIfThere(join(cluster, 'postmaster.pid')))?.split('\n');
  return Number(lines?.[0]) === pid && lines?.[7]?.trim() === 'ready';
}

/**
 * Asks it to disconnect its clients and write a checkpoint, for at most `timeoutMs`; then to stop without one; then
 * kills it.
 */
export async function stopServer(server: ChildProcess, timeoutMs: number): Promise<void> {
  const steps = [
    ['SIGINT', timeoutMs],
    ['SIGQUIT', KILL_AFTER_MS],
    ['SIGKILL', STOP_TIMEOUT_MS],
  ] as const;
  for (const [signal, waitMs] of steps) {
    if (waitMs === 0) continue;
    if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      server.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      server.kill(signal);
    });
  }
}

/** Nothing of the gateway's own environment, which may hold secrets and PG… variables. */
export const environment = ({ PATH } = process.env): NodeJS.ProcessEnv => ({
  ...(PATH === undefined ? {} : { PATH }),
  LC_ALL: 'C',
  TZ: 'UTC',
}); // without one, the system has a default

async function openLog(file: string) {
  const size = await stat(file).then(
    (stats) => stats.size,
    () => 0,
  );
  if (size > MAX_LOG_BYTES) await rename(file, `${file}.old`);
  return open(file, 'a', 0o600);
}

/** Holds the password. */
export const urlOf = (home: Pick<Home, 'password'>, port: number, database = DATABASE): string =>
  `postgres://${USER}:${home.password}@127.0.0.1:${port}/${database}`;

/** Connects, works, and disconnects. Rejects with what the driver says where it cannot connect, else as `work` does. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined); // the query that it breaks rejects
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined); // it may never have been connected
  }
}

/** Undefined only where there is no such file: what cannot be read is not taken for missing, and made anew. */
export const textIfThere = async (file: string): Promise<string | undefined> =>
  (await ifThere(readFile(file, 'utf8')))?.trim();

/** Ends early, without a word, when `signal` is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => undefined);
