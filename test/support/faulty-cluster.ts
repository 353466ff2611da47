/** Three gateways, a PostgreSQL and a NATS that can be made to fail: killed, stopped, cut off, with wrong clocks. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { eventually } from './eventually.ts';
import { FaultyDatabase } from './faulty-database.ts';
import { startTestGateway, type TestGateway } from './gateway.ts';
import type { TestNats } from './nats.ts';
import { startProxy, type TestProxy } from './proxy.ts';

const CLOCK = new URL('./clock-offset.mjs', import.meta.url).href;
const START_WITHIN_MS = 60_000;

export class FaultyGateway {
  readonly name: string;
  /** To the database. */
  readonly proxy: TestProxy;
  /** To NATS, where that carries the messages. */
  readonly bus: TestProxy | undefined;
  readonly #env: Readonly<Record<string, string>>;
  readonly #dataDir: string;
  readonly #clock: string;
  running: TestGateway | undefined;

  constructor(
    name: string,
    { proxy, bus }: Pick<FaultyGateway, 'proxy' | 'bus'>,
    dataDir: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.name = name;
    this.proxy = proxy;
    this.bus = bus;
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

  /** Says how it has ended without having been stopped; undefined: it has not. */
  get ending(): string | undefined {
    if (this.running === undefined) return 'not started again';
    const { process, output } = this.running;
    const status = process.exitCode ?? process.signalCode;
    return status === null ? undefined : `ended with ${status}:\n${output.stderr.slice(-2_000)}`;
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
  /** The bus; undefined: PostgreSQL is. */
  readonly nats?: TestNats | undefined;
  /** More settings of all gateways. */
  readonly env?: Readonly<Record<string, string>>;
};

export type FaultyCluster = {
  readonly gateways: readonly FaultyGateway[];
  /** Not behind any of the proxies. */
  readonly databaseUrl: string;
  /** Undefined where the database is that of others. */
  readonly database: FaultyDatabase | undefined;
  readonly nats: TestNats | undefined;
  /** Copies the database. What is returned has the copy take over, for all gateways: what was written since is lost. */
  copyDatabase(): Promise<() => Promise<void>>;
  close(): Promise<void>;
};

export async function startFaultyCluster(options: FaultyClusterOptions): Promise<FaultyCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-faulty-'));
  const { policy, databaseUrl, nats } = options;
  const own = databaseUrl === undefined ? await FaultyDatabase.start(folder) : undefined;
  const direct = (): string => databaseUrl ?? own!.url;
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
      const url = new URL(direct());
      const proxy = await startProxy(url.host);
      url.host = proxy.address;
      const bus = nats && (await startProxy(new URL(nats.url).host));
      const own = { SVC_DATABASE_URL: url.href, ...(bus && { SVC_BUS_URL: `nats://${bus.address}` }) };
      return new FaultyGateway(name, { proxy, bus }, join(folder, name), { ...env, ...own });
    }),
  );
  // The first makes the tables.
  await gateways[0]!.start();
  await Promise.all(gateways.slice(1).map((gateway) => gateway.start()));
  return {
    gateways,
    get databaseUrl() {
      return direct();
    },
    database: own,
    nats,
    copyDatabase: async () => {
      const takeOver = await own!.copy();
      return async () => {
        await takeOver();
        for (const { proxy } of gateways) proxy.pointTo(new URL(direct()).host);
      };
    },
    close: async () => {
      await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
      await Promise.all(gateways.flatMap(({ proxy, bus }) => [proxy.close(), bus?.close()]));
      await own?.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

type Fault = (cluster: FaultyCluster, gateway: FaultyGateway, ms: number) => Promise<void>;

/**
 * Each does its harm, waits, and makes it good again. A gateway may have one trouble of each kind at a time, and the
 * database and NATS one for all.
 */
export const FAULTS = {
  process: {
    'kill -9': async (_, gateway, ms) => {
      await gateway.stop('SIGKILL');
      await sleep(ms);
      await startAgain(gateway);
    },
    SIGTERM: async (_, gateway, ms) => {
      await gateway.stop('SIGTERM');
      await sleep(ms);
      await startAgain(gateway);
    },
    'killed while leaving': async (_, gateway, ms) => {
      gateway.running?.process.kill('SIGTERM');
      await sleep(ms / 20);
      await gateway.stop('SIGKILL');
      await startAgain(gateway);
    },
    SIGSTOP: async (_, gateway, ms) => {
      gateway.running?.process.kill('SIGSTOP');
      await sleep(2 * ms);
      gateway.running?.process.kill('SIGCONT');
    },
  },
  network: {
    'database out of reach': async (_, { proxy }, ms) => {
      proxy.refuse();
      await sleep(2 * ms);
      proxy.serve();
    },
    'database half open': async (_, { proxy }, ms) => {
      proxy.freeze();
      await sleep(2 * ms);
      proxy.thaw();
    },
    'database far away': async (_, { proxy }, ms) => {
      proxy.delay(20 + ms / 20);
      await sleep(2 * ms);
      proxy.delay(0);
    },
    'connections cut': async (_, { proxy }) => proxy.cut(),
  },
  clock: {
    'clock set ahead': (_, gateway, ms) => misled(gateway, 3_600_000, 2 * ms),
    'clock set back': (_, gateway, ms) => misled(gateway, -3_600_000, 2 * ms),
    /** Long enough for the gateway to follow. */
    'clock set back for longer': (_, gateway, ms) => misled(gateway, -3_600_000, 12_000 + ms),
  },
  bus: {
    'NATS out of reach': async (_, { bus }, ms) => {
      bus?.refuse();
      await sleep(2 * ms);
      bus?.serve();
    },
  },
  database: {
    'database killed': async (cluster) => {
      cluster.database?.kill();
      await sleep(2_000);
      await askDatabase(cluster.databaseUrl, 'SELECT 1');
    },
  },
  NATS: {
    'NATS killed': async ({ nats }, _, ms) => {
      await nats?.kill();
      await sleep(ms);
      await nats?.restart();
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Fault>>>>;

async function misled(gateway: FaultyGateway, offsetMs: number, ms: number): Promise<void> {
  gateway.setClock(offsetMs);
  await sleep(ms);
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
