/**
 * `SVC_DATABASE_URL=embedded`: a real PostgreSQL of the gateway's own under its data directory. It listens on loopback
 * only, on a port and with a password made for it, starts and stops with the gateway, is started again when it dies,
 * and one that a killed gateway left running is stopped before the next is started.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { messageOf } from '../../core/base/text.ts';
import { removeRemains, replaceFile } from '../../system/files.ts';
import type { TroubleLog } from '../../system/log.ts';
import { locatePostgres } from './binaries.ts';
import { stopLeftover } from './leftover.ts';
import {
  DATABASE,
  environment,
  type Home,
  pause,
  ServerEnded,
  STOP_TIMEOUT_MS,
  startServer,
  stopServer,
  textIfThere,
  USER,
  urlOf,
  withClient,
} from './server.ts';
import { chooseRunAs, handOver, openTheWay, type RunAs, requireAccount, spawnAs } from './user.ts';

export type EmbeddedPostgres = {
  /** Holds the password: for the pool, never for a log. Stays the same until `stop`. */
  readonly url: string;
  /**
   * Disconnects clients, writes a checkpoint and exits; killed if it is not done in time. Resolves when the process is
   * gone.
   */
  stop(timeoutMs?: number): Promise<void>;
};

export type EmbeddedOptions = {
  /** The gateway's data directory; everything lies in its folder `postgres`. */
  readonly dataDir: string;
  /** Further settings by name, for tests: `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The user to run it as; unset: what `chooseRunAs` finds. */
  readonly runAs?: RunAs;
  /** Aborted: what has been started ends again, and the start rejects. */
  readonly signal?: AbortSignal | undefined;
};

const RESTART_PAUSE_MS = 1000;
const PORT_TRIES = 5;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '', // their paths may be at most 107 bytes long, which a data directory often exceeds
  max_connections: '120', // the most of SVC_DATABASE_POOL, those that migrate, and whoever looks into it
  shared_buffers: '32MB',
  log_min_messages: 'warning',
};

/** Rejects with a sentence that says what prevents the start. */
export async function startEmbeddedPostgres(options: EmbeddedOptions, log: TroubleLog): Promise<EmbeddedPostgres> {
  const home = await prepareHome(options);
  const major = await textIfThere(join(home.cluster, 'PG_VERSION'));
  const bundled = home.binaries.version.split('.')[0];
  if (major === undefined) await initialise(home);
  else if (major !== bundled)
    throw new Error(
      `${home.cluster} was created by PostgreSQL ${major}, but this gateway includes ${bundled}; dump it with the old gateway and load it into the new one`,
    );
  await removeUnfinished(home);
  await stopLeftover(home.cluster, (port) => urlOf(home, port), STOP_TIMEOUT_MS, log);
  await handOver(home.cluster, home.runAs); // an earlier gateway may have run it as somebody else
  await chmod(home.cluster, 0o700); // PostgreSQL refuses what others may write, as many a copy and volume leaves it
  const { server, port } = await startOnFreePort(home);
  try {
    await createDatabase(home, port);
  } catch (error) {
    await stopServer(server, STOP_TIMEOUT_MS);
    throw error;
  }
  log.info('started the embedded PostgreSQL', { port, dir: home.cluster, version: home.binaries.version });
  const keeper = new Keeper(home, port, server, log);
  return { url: urlOf(home, port), stop: (timeoutMs = STOP_TIMEOUT_MS) => keeper.stop(timeoutMs) };
}

/** Restarts the server, on the same port, whenever it ends unasked. */
class Keeper {
  readonly #home: Home;
  readonly #port: number;
  readonly #log: TroubleLog;
  #server: ChildProcess;
  readonly #stopping = new AbortController();
  #restart: Promise<void> = Promise.resolve();

  constructor(home: Home, port: number, server: ChildProcess, log: TroubleLog) {
    this.#home = { ...home, signal: this.#stopping.signal };
    this.#port = port;
    this.#log = log;
    this.#server = server;
    this.#watch();
  }

  async stop(timeoutMs: number): Promise<void> {
    this.#stopping.abort(new Error('the gateway is stopping'));
    await this.#restart;
    await stopServer(this.#server, timeoutMs);
  }

  #watch(): void {
    this.#server.once('exit', (code, signal) => {
      if (this.#stopping.signal.aborted) return;
      this.#log.warn('the embedded PostgreSQL exited; restarting it', { code, signal, log: this.#home.logFile });
      this.#restart = this.#startAgain();
    });
  }

  async #startAgain(): Promise<void> {
    for (;;) {
      await pause(RESTART_PAUSE_MS, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      try {
        this.#server = await startServer(this.#home, this.#port);
        this.#watch();
        return;
      } catch (error) {
        if (!this.#stopping.signal.aborted)
          this.#log.warn('the embedded PostgreSQL does not start; retrying', { cause: messageOf(error) });
      }
    }
  }
}

async function prepareHome({ dataDir, settings = {}, signal, ...options }: EmbeddedOptions): Promise<Home> {
  const root = join(resolve(dataDir), 'postgres');
  const runAs = options.runAs ?? (await chooseRunAs());
  await mkdir(root, { recursive: true, mode: 0o700 });
  await openTheWay(runAs, resolve(dataDir), root);
  const binaries = await locatePostgres(root, runAs);
  const cluster = join(root, 'cluster');
  const password = await keptPassword(join(root, 'password'), cluster);
  return {
    root,
    cluster,
    logFile: join(root, 'log'),
    password,
    binaries,
    runAs,
    settings: { ...SETTINGS, ...settings },
    signal,
  };
}

/**
 * Written before the cluster is made with it, readable by the gateway's own account only. A cluster opens with no
 * other.
 */
async function keptPassword(file: string, cluster: string): Promise<string> {
  await removeRemains(file);
  const kept = await textIfThere(file);
  if (kept !== undefined && kept !== '') return kept;
  if ((await textIfThere(join(cluster, 'PG_VERSION'))) !== undefined)
    throw new Error(
      `${file} is missing; restore it from the same backup as ${cluster}, which accepts no other password`,
    );
  const password = randomBytes(24).toString('base64url');
  await replaceFile(file, `${password}\n`);
  return password;
}

/**
 * Made in a folder of its own and renamed when it is whole: a kill in the middle leaves nothing that looks finished,
 * and the work of a killed gateway, which may still go on, is not in the way.
 */
async function initialise(home: Home): Promise<void> {
  if (home.runAs.kind === 'self') requireAccount();
  await mkdir(unfinishedIn(home), { recursive: true, mode: 0o700 });
  await handOver(unfinishedIn(home), home.runAs);
  const own = await mkdtemp(join(unfinishedIn(home), 'of-'));
  const [cluster, passwordFile] = [join(own, 'cluster'), join(own, 'password')];
  await mkdir(cluster, { mode: 0o700 });
  await writeFile(passwordFile, `${home.password}\n`, { mode: 0o600 });
  await handOver(own, home.runAs);
  await run(home, home.binaries.initdb, [
    `--pgdata=${cluster}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--no-locale',
    '--encoding=UTF8',
    '--no-instructions',
  ]).finally(() => rm(passwordFile, { force: true }));
  await rename(cluster, home.cluster);
}

const unfinishedIn = ({ root }: Home): string => join(root, 'unfinished');

/** Removes an unfinished cluster of a killed gateway; may need several tries while its initdb is still writing. */
const removeUnfinished = (home: Home): Promise<void> =>
  rm(unfinishedIn(home), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });

async function startOnFreePort(home: Home): Promise<{ readonly server: ChildProcess; readonly port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { server: await startServer(home, port), port };
    } catch (error) {
      // Somebody else may take the port before the server does, which then ends.
      if (!(error instanceof ServerEnded) || attempt === PORT_TRIES || home.signal?.aborted) throw error;
    }
  }
}

async function createDatabase(home: Home, port: number): Promise<void> {
  await withClient(urlOf(home, port, 'postgres'), async (client) => {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  });
}

/** Runs a program to its end; rejects with what it complained about, or with the reason of the signal. */
async function run(home: Home, program: string, args: readonly string[]): Promise<void> {
  home.signal?.throwIfAborted(); // one that is aborted already calls no listener
  const child = spawnAs(home.runAs, program, args, {
    cwd: home.root,
    env: environment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const end = (): void => void child.kill();
  home.signal?.addEventListener('abort', end);
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0
        ? resolve()
        : reject(home.signal?.aborted ? home.signal.reason : new Error(`${program} failed: ${complaint.trim()}`)),
    );
  }).finally(() => home.signal?.removeEventListener('abort', end));
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
