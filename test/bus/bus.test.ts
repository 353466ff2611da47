/** Messages between gateways: what holds whatever carries them. */
import { createHmac, randomUUID } from 'node:crypto';
import { connect } from 'nats';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { NatsBus } from '../../src/bus/nats.ts';
import { natsServers } from '../../src/bus/nats-servers.ts';
import { PostgresBus } from '../../src/bus/postgres.ts';
import type { ClusterMessage, RunId } from '../../src/ports/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { NATS_SERVER, startNats, type TestNats } from '../support/nats.ts';
import { withPostgres } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';

const newDatabase = withPostgres();
const LOG = { info: () => undefined, warn: () => undefined };

type Heard = { readonly from: RunId; readonly message: ClusterMessage };
type TestBus = {
  readonly bus: NatsBus | PostgresBus;
  readonly run: RunId;
  readonly heard: Heard[];
  gaps: number;
};

type Adapter = {
  readonly name: string;
  readonly isHere: boolean;
  /** A meeting point of gateways that meet nobody else. */
  place(): Promise<string>;
  create(place: string, frames: { readonly self: RunId; readonly secret: string }): NatsBus | PostgresBus;
  /** Sends to all, as somebody who can reach the place and does not have the secret, and hears what is said there. */
  intrude(place: string, secret: string): Promise<{ say(text: string): Promise<unknown>; readonly heard: string[] }>;
};

let nats: TestNats;
const natsBus = (url: string, frames: { readonly self: RunId; readonly secret: string }): NatsBus =>
  new NatsBus({
    ...frames,
    servers: natsServers(url)!,
    caFile: undefined,
    credentialsFile: undefined,
    name: 't',
    log: LOG,
  });

const ADAPTERS: readonly Adapter[] = [
  {
    name: 'PostgreSQL',
    isHere: true,
    place: () => newDatabase({ isEmpty: true }),
    create: (url, frames) => new PostgresBus({ ...frames, url, log: LOG }),
    intrude: async (url) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      onTestFinished(() => client.end());
      const heard: string[] = [];
      client.on('notification', ({ payload }) => heard.push(payload ?? ''));
      await client.query('LISTEN svc_cluster');
      return { heard, say: (text) => client.query('SELECT pg_notify($1, $2)', ['svc_cluster', text]) };
    },
  },
  {
    name: 'NATS',
    isHere: NATS_SERVER !== undefined,
    // Gateways of one test share a secret, and so do not hear the others.
    place: async () => nats.url,
    create: natsBus,
    intrude: async (url, secret) => {
      const client = await connect({ servers: [url.replace('nats://', '')] });
      onTestFinished(() => client.close());
      const heard: string[] = [];
      const subjects = new Set<string>();
      client.subscribe('svc.>', {
        callback: (_, message) => {
          subjects.add(message.subject);
          if (message.subject.endsWith('.all')) heard.push(message.string());
        },
      });
      await client.flush();
      const first = natsBus(url, { self: randomUUID() as string as RunId, secret });
      await first.start();
      onTestFinished(() => first.close());
      const all = await eventually(() => [...subjects].find((subject) => subject.endsWith('.all'))!);
      heard.length = 0;
      return {
        heard,
        say: async (text) => {
          client.publish(all, text);
          await client.flush();
        },
      };
    },
  },
];

const confirm = (id: number): ClusterMessage => ({ type: 'appended', seq: id });
const idsOf = ({ heard }: TestBus): number[] => heard.map(({ message }) => (message as { seq: number }).seq);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

for (const { name, isHere, place, create, intrude } of ADAPTERS)
  describe.skipIf(!isHere)(`the bus over ${name}`, () => {
    if (name === 'NATS')
      beforeAll(async () => {
        nats = await startNats('max_payload: 16384', afterAll);
      });

    const openBus = async (url: string, secret: string): Promise<TestBus> => {
      const run = randomUUID() as string as RunId;
      const bus = create(url, { self: run, secret });
      const opened: TestBus = { bus, run, heard: [], gaps: 0 };
      bus.onMessage((from, message) => opened.heard.push({ from, message }));
      bus.onGap(() => {
        opened.gaps += 1;
      });
      onTestFinished(() => bus.close());
      await bus.start();
      return opened;
    };

    test('delivers to all others, or to one, in order from each sender', async () => {
      const [url, secret] = [await place(), randomUUID()];
      const [here, there, third] = [await openBus(url, secret), await openBus(url, secret), await openBus(url, secret)];
      for (const id of upTo(3_000)) expect(here.bus.send('all', confirm(id))).toBe(true);
      for (const id of upTo(10)) there.bus.send(here.run, confirm(id));
      await eventually(() =>
        expect([idsOf(there).length, idsOf(third).length, idsOf(here).length]).toEqual([3_000, 3_000, 10]),
      );
      expect(idsOf(there)).toEqual(upTo(3_000));
      expect(idsOf(third)).toEqual(upTo(3_000));
      expect(here.heard[0]).toEqual({ from: there.run, message: { type: 'appended', seq: 1 } });
    });

    test('carries messages larger than a frame, in whichever characters', async () => {
      const [url, secret] = [await place(), randomUUID()];
      const [here, there] = [await openBus(url, secret), await openBus(url, secret)];
      const detail = 'ein "Zitat" 🎉\\ \n'.repeat(20_000);
      here.bus.send('all', { type: 'answer', id: 1, answer: detail });
      here.bus.send('all', confirm(1));
      await eventually(() => expect(there.heard).toHaveLength(2));
      expect(there.heard[0]?.message).toEqual({ type: 'answer', id: 1, answer: detail });
      expect(here.bus.send('all', { type: 'answer', id: 1, answer: 'x'.repeat(3_000_000) })).toBe(false);
    });

    test('says that some may be missing after it was cut off, and goes on by itself', async () => {
      const [direct, secret] = [await place(), randomUUID()];
      const { url, proxy } = await throughProxy(direct);
      const [here, there] = [await openBus(direct, secret), await openBus(url.href, secret)];
      const before = there.gaps;
      proxy.refuse();
      await eventually(() => expect(there.bus.isConnected).toBe(false));
      expect(there.bus.send('all', confirm(5))).toBe(false);
      here.bus.send('all', confirm(6));
      proxy.serve();
      await eventually(() => expect(there.gaps).toBe(before + 1));
      here.bus.send('all', confirm(7));
      await eventually(() => expect(idsOf(there)).toEqual([7]));
      expect([there.gaps, idsOf(here)]).toEqual([before + 1, []]);
    });

    test('says at once that it cannot send while nothing answers', async () => {
      const { url, proxy } = await throughProxy(await place());
      const { bus } = await openBus(url.href, randomUUID());
      proxy.freeze();
      await eventually(() => expect(bus.send('all', confirm(1))).toBe(false));
      proxy.thaw();
      await eventually(() => expect(bus.isConnected).toBe(true));
    });

    test('drops what was not made with the secret of the cluster, and what comes again', async () => {
      const [url, secret] = [await place(), randomUUID()];
      const here = await openBus(url, secret);
      const stranger = await openBus(url, 'another');
      const intruder = await intrude(url, secret);
      stranger.bus.send('all', confirm(1));
      const forged = `{"f":"x","n":1,"m":[${JSON.stringify(confirm(1))}]}`;
      await intruder.say('nonsense');
      await intruder.say(`nonsensenonsensenonsense${forged}`);
      await intruder.say(createHmac('sha256', 'another').update(forged).digest('base64url').slice(0, 22) + forged);
      const friend = await openBus(url, secret);
      friend.bus.send('all', confirm(2));
      await eventually(() => expect(idsOf(here)).toEqual([2]));
      for (const said of [...intruder.heard]) await intruder.say(said);
      friend.bus.send('all', confirm(3));
      await eventually(() => expect(idsOf(here).at(-1)).toBe(3));
      expect(idsOf(here)).toEqual([2, 3]);
    });
  });
