/** Messages between gateways over LISTEN and NOTIFY. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ClusterMessage, RunId } from '../../../../src/ports/cluster.ts';
import { PostgresBus } from '../../../../src/stores/postgres/cluster/bus.ts';
import { eventually } from '../../../support/eventually.ts';
import { withPostgres } from '../../../support/postgres.ts';
import { throughProxy } from '../../../support/proxy.ts';

const newDatabase = withPostgres();
const LOG = { info: () => undefined, warn: () => undefined };

type Heard = { readonly from: RunId; readonly message: ClusterMessage };
type TestBus = { readonly bus: PostgresBus; readonly run: RunId; readonly heard: Heard[]; gaps: number };

async function openBus(url: string, secret = 'shared'): Promise<TestBus> {
  const run = randomUUID() as string as RunId;
  const bus = new PostgresBus({ url, self: run, secret, log: LOG });
  const opened: TestBus = { bus, run, heard: [], gaps: 0 };
  bus.onMessage((from, message) => opened.heard.push({ from, message }));
  bus.onGap(() => {
    opened.gaps += 1;
  });
  await bus.start();
  onTestFinished(() => bus.close());
  return opened;
}

const confirm = (id: number): ClusterMessage => ({ type: 'confirm', id });
const idsOf = ({ heard }: TestBus): number[] => heard.map(({ message }) => (message as { id: number }).id);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

describe('the bus over PostgreSQL', () => {
  test('delivers to all others, or to one, in order from each sender', async () => {
    const url = await newDatabase();
    const [here, there, third] = [await openBus(url), await openBus(url), await openBus(url)];
    for (const id of upTo(3_000)) expect(here.bus.send('all', confirm(id))).toBe(true);
    for (const id of upTo(10)) there.bus.send(here.run, confirm(id));
    await eventually(() =>
      expect([idsOf(there).length, idsOf(third).length, idsOf(here).length]).toEqual([3_000, 3_000, 10]),
    );
    expect(idsOf(there)).toEqual(upTo(3_000));
    expect(idsOf(third)).toEqual(upTo(3_000));
    expect(here.heard[0]).toEqual({ from: there.run, message: { type: 'confirm', id: 1 } });
  });

  test('carries messages larger than a notification, in whichever characters', async () => {
    const url = await newDatabase();
    const [here, there] = [await openBus(url), await openBus(url)];
    const detail = 'ein "Zitat" 🎉\\ \n'.repeat(20_000);
    here.bus.send('all', { type: 'changed', topic: 'agents', detail });
    here.bus.send('all', confirm(1));
    await eventually(() => expect(there.heard).toHaveLength(2));
    expect(there.heard[0]?.message).toEqual({ type: 'changed', topic: 'agents', detail });
    expect(here.bus.send('all', { type: 'changed', topic: 'agents', detail: 'x'.repeat(3_000_000) })).toBe(false);
  });

  test('says that some may be missing after it was cut off, and goes on by itself', async () => {
    const direct = await newDatabase();
    const { url, proxy } = await throughProxy(direct);
    const [here, there] = [await openBus(direct), await openBus(url.href)];
    const before = there.gaps;
    proxy.cut();
    await eventually(() => expect(there.gaps).toBe(before + 1));
    here.bus.send('all', confirm(7));
    await eventually(() => expect(idsOf(there)).toEqual([7]));
  });

  test('says at once that it cannot send while the database does not answer', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const { bus } = await openBus(url.href);
    proxy.freeze();
    await eventually(() => expect(bus.send('all', confirm(1))).toBe(false));
    proxy.thaw();
    await eventually(() => expect(bus.isConnected).toBe(true));
  });

  test('drops what was not made with the secret of the cluster', async () => {
    const url = await newDatabase();
    const [here, stranger] = [await openBus(url), await openBus(url, 'another')];
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    stranger.bus.send('all', confirm(1));
    await client.query(`NOTIFY svc_cluster, 'nonsense'`);
    await client.query(`NOTIFY svc_cluster, 'nonsensenonsensenonsense{"f":"x","n":1,"m":[]}'`);
    const friend = await openBus(url);
    friend.bus.send('all', confirm(2));
    await eventually(() => expect(idsOf(here)).toEqual([2]));
  });
});
