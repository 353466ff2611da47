/** Three gateways and a PostgreSQL that can be made to fail: killed, stopped, cut off, delayed, with wrong clocks. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startTestPostgres } from './database-server.ts';
import { eventually } from './eventually.ts';
import { startTestGateway, type TestGateway } from './gateway.ts';
import { startProxy, type TestProxy } from './proxy.ts';

const CLOCK = new URL('./clock-offset.mjs', import.meta.url).href;
const START_WITHIN_MS = 60_000;

export class FaultyGateway {
  readonly name: string;
  readonly proxy: TestProxy;
  readonly #env: Readonly<Record<string, string>>;
  readonly #dataDir: string;
  readonly #clock: string;
  running: TestGateway | undefined;

  constructor(name: string, proxy: TestProxy, dataDir: string, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.proxy = proxy;
    this.#dataDir = dataDir;
    this.#clock = `${dataDir}.clock`;
    this.#env = { ...env, SVC_NODE_NAME: name, CLOCK_OFFSET: this.#clock, NODE_OPTIONS: `--import=${CLOCK}` };
  }

  get dataDir(): string {
    return join(this.#dataDir, 'data');
  }

  async start(): Promise<void> {
    this.running = await startTestGateway({
      dataDir: this.#dataDir,
      env: this.#env,
      startTimeoutMs: START_WITHIN_MS,
    });
  }

  /** Its exit status, or the signal it died of; undefined: it was not running. */
  async stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | NodeJS.Signals | undefined> {
    const { running } = this;
    this.running = undefined;
    return running?.stop(signal);
  }

  setClock(offsetMs: number): void {
    if (offsetMs === 0) rmSync(this.#clock, { force: true });
    else writeFileSync(this.#clock, String(offsetMs));
  }
}

export type FaultyClusterOptions = {
  /** The file of a policy. */
  readonly policy: string;
  /** The URL of a database that is not to be killed; undefined: one of its own, that may be. */
  readonly databaseUrl?: string;
  /** More settings of all gateways. */
  readonly env?: Readonly<Record<string, string>>;
};

export type FaultyCluster = {
  readonly gateways: readonly FaultyGateway[];
  /** Not behind any of the proxies. */
  readonly databaseUrl: string;
  /** Without a checkpoint, as when the machine dies; it comes back by itself. */
  killDatabase(): void;
  close(): Promise<void>;
};

export async function startFaultyCluster(options: FaultyClusterOptions): Promise<FaultyCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-faulty-'));
  const { policy, databaseUrl } = options;
  const own = databaseUrl === undefined ? await startTestPostgres({ dataDir: folder }) : undefined;
  const database = databaseUrl ?? own!.url;
  const env = {
    SVC_CLUSTER: 'on',
    SVC_POLICY_PATH: policy,
    SVC_JWT_PRIVATE_KEY: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    SVC_ARGON2_MEMORY_KIB: '1024',
    SVC_IO_THREADS: '1',
    SVC_LOG_LEVEL: 'warn',
    ...options.env,
  };
  const gateways = await Promise.all(
    ['one', 'two', 'three'].map(async (name) => {
      const url = new URL(database);
      const proxy = await startProxy(url.host);
      url.host = proxy.address;
      return new FaultyGateway(name, proxy, join(folder, name), { ...env, SVC_DATABASE_URL: url.href });
    }),
  );
  // The first makes the tables.
  await gateways[0]!.start();
  await Promise.all(gateways.slice(1).map((gateway) => gateway.start()));
  return {
    gateways,
    databaseUrl: database,
    killDatabase: () => {
      const path = join(folder, 'postgres', 'cluster', 'postmaster.pid');
      if (existsSync(path)) process.kill(Number(readFileSync(path, 'utf8').split('\n')[0]), 'SIGKILL');
    },
    close: async () => {
      await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
      await Promise.all(gateways.map(({ proxy }) => proxy.close()));
      await own?.stop(0);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Each does its harm, waits, and makes it good again. */
export const FAULTS = {
  'kill -9': async (_: FaultyCluster, gateway: FaultyGateway, ms: number) => {
    await gateway.stop('SIGKILL');
    await sleep(ms);
    await startAgain(gateway);
  },
  SIGTERM: async (_: FaultyCluster, gateway: FaultyGateway, ms: number) => {
    await gateway.stop('SIGTERM');
    await sleep(ms);
    await startAgain(gateway);
  },
  SIGSTOP: async (_: FaultyCluster, gateway: FaultyGateway, ms: number) => {
    gateway.running?.process.kill('SIGSTOP');
    await sleep(2 * ms);
    gateway.running?.process.kill('SIGCONT');
  },
  'database out of reach': async (_: FaultyCluster, { proxy }: FaultyGateway, ms: number) => {
    proxy.refuse();
    await sleep(2 * ms);
    proxy.serve();
  },
  'database half open': async (_: FaultyCluster, { proxy }: FaultyGateway, ms: number) => {
    proxy.freeze();
    await sleep(2 * ms);
    proxy.thaw();
  },
  'database far away': async (_: FaultyCluster, { proxy }: FaultyGateway, ms: number) => {
    proxy.delay(20 + ms / 20);
    await sleep(2 * ms);
    proxy.delay(0);
  },
  'connections cut': async (_: FaultyCluster, { proxy }: FaultyGateway) => proxy.cut(),
  'clock set ahead': (_: FaultyCluster, gateway: FaultyGateway, ms: number) => misled(gateway, 3_600_000, ms),
  'clock set back': (_: FaultyCluster, gateway: FaultyGateway, ms: number) => misled(gateway, -3_600_000, ms),
  'database killed': async (cluster: FaultyCluster) => {
    cluster.killDatabase();
    await sleep(2_000);
  },
} as const;
export type FaultName = keyof typeof FAULTS;

async function misled(gateway: FaultyGateway, offsetMs: number, ms: number): Promise<void> {
  gateway.setClock(offsetMs);
  await sleep(2 * ms);
  gateway.setClock(0);
}

/** The database may be away at the moment: an orchestrator tries again. */
const startAgain = (gateway: FaultyGateway): Promise<void> => eventually(() => gateway.start(), 3 * START_WITHIN_MS);

/** Asks the database itself. */
export async function askDatabase<Row extends object>(url: string, text: string): Promise<readonly Row[]> {
  return eventually(async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3_000 });
    try {
      await client.connect();
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  });
}
