import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { leaveClusterOf } from '../../src/app/leave-cluster.ts';
import { openResources } from '../../src/app/start-resources.ts';
import { newRun } from '../../src/cluster/run.ts';
import { readConfig } from '../../src/config/read.ts';
import type { AgentRegistration } from '../../src/core/agents/agents.ts';
import { agentKeyOf } from '../../src/core/base/ids.ts';
import { createEmbeddedAgents } from '../../src/stores/embedded/agents.ts';
import { readStoredRuns } from '../../src/stores/embedded/runs.ts';
import { createEmbeddedStates } from '../../src/stores/embedded/states.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/stores/embedded/store.ts';
import { createPostgresLog } from '../../src/stores/postgres/cluster/log.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import { StartWait } from '../../src/stores/postgres/start-wait.ts';
import { createClock } from '../../src/system/clock.ts';
import { Closers } from '../../src/system/closers.ts';
import { valueOf } from '../support/accounts.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();
const MUTE = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const crawlerWith = (credential: string) =>
  ({
    identity: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
    credential,
    registeredAtMs: 1_000,
    parent: undefined,
  }) as unknown as AgentRegistration;

describe('the data directory of a gateway in a cluster', () => {
  test('is refused alone until it has left, with the tokens and halts of the cluster', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-left-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const url = await newDatabase();
    const config = valueOf(
      readConfig({ SVC_DATA_DIR: dataDir, SVC_HTTP_ADDR: '127.0.0.1:0', SVC_GRPC_ADDR: '127.0.0.1:0' }),
    );
    const inStore = async (work: (store: EmbeddedStore) => unknown): Promise<void> => {
      const store = openEmbeddedStore(dataDir);
      try {
        await work(store);
      } finally {
        await store.close();
      }
    };
    const startAlone = async (): Promise<void> => {
      const closers = new Closers();
      const { signal } = new AbortController();
      const wait = new StartWait(MUTE, signal);
      const context = { config, log: MUTE as never, signal, wait, closers, run: undefined, telemetry: undefined };
      await openResources(context, createClock()).finally(() => closers.closeAll(0));
    };
    const joined = (): Promise<void> => inStore((store) => readStoredRuns(store).begin(newRun()));

    await inStore((store) => createEmbeddedAgents(store).save(crawlerWith('revoked')));
    await startAlone();
    await expect(leaveClusterOf(config, MUTE as never)).rejects.toThrow('is not that of a gateway in a cluster');
    await joined();
    const refusal = `the data directory ${dataDir} is that of a gateway in a cluster, and SVC_CLUSTER is not set; set SVC_CLUSTER=on, also for a single gateway, or leave the cluster by \`svc cluster leave\` (docs/cluster.md, Leaving a cluster)`;
    await expect(startAlone()).rejects.toThrow(refusal);
    await expect(leaveClusterOf(config, MUTE as never)).rejects.toThrow('set SVC_DATABASE_URL');

    const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, MUTE);
    onTestFinished(() => postgres.close());
    const leave = () => leaveClusterOf({ ...config, SVC_DATABASE_URL: url }, MUTE as never);
    await expect(leave()).rejects.toThrow('no gateway is known in the database at SVC_DATABASE_URL');
    const joinAsOne = "SELECT cluster_join($1, 'one', 60000, '1', '{1,1}', 'serve', NULL, '{}', '{}', '{}')";
    const run = newRun();
    valueOf(await postgres.attempt((on) => on.query(joinAsOne, [run])));
    const halt = { id: 'h1', scope: 'global', createdAtMs: 5 };
    const shared = createPostgresLog({ postgres, run, leaseMs: 60_000 });
    const { place } = valueOf(await shared.whole());
    const crawler = crawlerWith('rotated');
    const groups = [
      [{ kind: 'agents', id: agentKeyOf(crawler.identity), body: crawler } as const],
      [{ kind: 'halts', id: 'h1', body: halt } as const],
    ];
    valueOf((await shared.append(randomUUID(), place, groups)) as never);
    expect(await leave()).toEqual({ agents: 1, halts: 1, approvals: 0 });
    await startAlone();
    await inStore((store) => {
      expect([...createEmbeddedAgents(store).load()].map(({ credential }) => credential)).toEqual(['rotated']);
      expect([...createEmbeddedStates(store).load('halts')]).toEqual([{ id: 'h1', row: halt }]);
      expect(readStoredRuns(store).last).toBeDefined(); // a cluster that it joins again settles what that has spent
    });

    await joined();
    await expect(startAlone()).rejects.toThrow(refusal);
  });
});
