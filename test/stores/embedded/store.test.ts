import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AgentRegistration } from '../../../src/core/agents/agents.ts';
import { agentKeyOf, type SecretDigest } from '../../../src/core/base/ids.ts';
import type { AgentStore } from '../../../src/ports/ports.ts';
import { createEmbeddedAgents } from '../../../src/stores/embedded/agents.ts';
import { StoreDatabase } from '../../../src/stores/embedded/database.ts';
import { openStore } from '../../../src/stores/embedded/start.ts';
import { type EmbeddedStore, openEmbeddedStore, STORE_FILE } from '../../../src/stores/embedded/store.ts';
import { temporaryFolder, temporaryStore } from '../../support/harness.ts';

/** As it was built: another process reads no TypeScript. */
const BUILT = new URL('../../../dist/src/stores/embedded/store.js', import.meta.url).href;

const QUIET = { warn: () => undefined };

const registration = (agentId: string, credential: string) => ({
  identity: { orgId: 'acme', teamId: 'search', agentId },
  credential: credential as SecretDigest,
  registeredAtMs: 1,
  parent: undefined,
});
const keyOf = (agentId: string) => agentKeyOf(registration(agentId, '').identity);
const credentialsIn = (folder: string): readonly string[] =>
  Array.from(createEmbeddedAgents(temporaryStore(folder)).load(), ({ credential }) => credential).toSorted();

describe('embedded store', () => {
  test('tables are separate and ordered by key, and a removed row is gone', async () => {
    const store = temporaryStore();
    const fruits = store.table<{ readonly sweet: boolean }>('fruits');
    const stones = store.table<string>('stones');
    await Promise.all([
      fruits.put('pear', { sweet: true }),
      fruits.put('lemon', { sweet: false }),
      stones.put('b', 'line\nand\ttab'),
      stones.put('a', "'); DROP TABLE rows; --"),
    ]);
    await fruits.remove('pear');
    expect([...fruits.entries()]).toEqual([['lemon', { sweet: false }]]);
    expect([...stones.entries()]).toEqual([
      ['a', "'); DROP TABLE rows; --"],
      ['b', 'line\nand\ttab'],
    ]);
    expect(fruits.get('pear')).toBeUndefined();
    await expect(stones.put('two\nlines', 'x')).rejects.toThrow('a key of the store is a single word');
  });

  test('all entries are read, also those after a key, however many there are', async () => {
    const table = temporaryStore().table<number>('numbers');
    const keys = Array.from({ length: 1_001 }, (_, nth) => String(nth).padStart(4, '0'));
    await Promise.all(keys.map((key) => table.put(key, Number(key))));
    expect(Array.from(table.entries(), ([key]) => key)).toEqual(keys);
    expect(Array.from(table.entriesAfter('0099', 600), ([, row]) => row)).toEqual(
      keys.slice(100, 700).map((key) => Number(key)),
    );
  });

  test('a transaction that throws changes nothing, and those beside it are kept', async () => {
    const store = temporaryStore();
    const table = store.table<number>('t');
    await table.put('a', 1);
    const outcomes = await Promise.allSettled([
      store.transaction((inside) => inside(table).put('before', 1)),
      store.transaction((inside) => {
        inside(table).put('a', 2);
        throw new Error('a bug');
      }),
      store.transaction((inside) => inside(table).put('after', inside(table).get('a') ?? 0)),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect([...table.entries()]).toEqual([
      ['a', 1],
      ['after', 1],
      ['before', 1],
    ]);
  });

  test('transactions see what those before them write, also while it is on its way', async () => {
    const store = temporaryStore();
    const counts = store.table<number>('counts');
    const others = store.table<number>('others');
    const addOne = () =>
      store.transaction((inside) => {
        const count = (inside(counts).get('n') ?? 0) + 1;
        inside(counts).put('n', count);
        inside(others).put(`n${count}`, count);
        return count;
      });
    const first = Array.from({ length: 50 }, addOne);
    await first[0];
    const all = await Promise.all([...first, ...Array.from({ length: 50 }, addOne)]);
    expect(all).toEqual(Array.from({ length: 100 }, (_, nth) => nth + 1));
    expect([...others.entries()]).toHaveLength(100);
    const isEmpty = await store.transaction((inside) => {
      for (const [key] of others.entries()) inside(others).remove(key);
      const wasEmptied = inside(others).isEmpty();
      inside(others).put('one', 1);
      return [wasEmptied, inside(others).isEmpty()];
    });
    expect(isEmpty).toEqual([true, false]);
    expect([...others.entries()]).toEqual([['one', 1]]);
  });

  test('a replaced or deregistered token returns with no restart', async () => {
    const folder = temporaryFolder();
    /** Returns the agents that a started gateway knows. */
    const run = async (work: (agents: AgentStore) => Promise<unknown>): Promise<readonly string[]> => {
      const store = openEmbeddedStore(folder);
      const agents = createEmbeddedAgents(store);
      const known = Array.from(agents.load(), ({ identity, credential }) => `${identity.agentId} ${credential}`);
      await work(agents);
      await store.close();
      return known.toSorted();
    };
    await run(async (agents) => {
      for (const [agentId, credential] of [
        ['crawler', 'c1'],
        ['crawler', 'c2'],
        ['reader', 'r1'],
        ['writer', 'w1'],
        ['writer', 'w1'],
      ] as const)
        await agents.save(registration(agentId, credential));
      await agents.save(registration('gone', 'g1'));
      await agents.remove(keyOf('gone'));
      await agents.remove(keyOf('never there'));
    });
    expect(
      await run(async (agents) => {
        await agents.save(registration('crawler', 'c3'));
        await agents.remove(keyOf('reader'));
      }),
    ).toEqual(['crawler c2', 'reader r1', 'writer w1']);
    expect(await run(async (agents) => agents.remove(keyOf('crawler')))).toEqual(['crawler c3', 'writer w1']);
    expect(await run(async () => undefined)).toEqual(['writer w1']);
  });

  test('a token replaced after a refused write returns with no restart', async () => {
    const folder = temporaryFolder();
    const store = openEmbeddedStore(folder);
    let isFull = false;
    /** The store, on a disk that takes nothing while it is full. */
    const refusing: EmbeddedStore = {
      ...store,
      transaction: (action) => (isFull ? Promise.reject(new Error('full')) : store.transaction(action)),
    };
    const agents = createEmbeddedAgents(refusing);
    await agents.save(registration('crawler', 'old'));
    await agents.save(registration('crawler', 'unrecorded'));
    isFull = true;
    await expect(agents.save(registration('crawler', 'old'))).rejects.toThrow('full');
    isFull = false;
    await agents.save(registration('crawler', 'new'));
    await store.close();
    expect(credentialsIn(folder)).toEqual(['new']);
  });

  test('a token of an earlier release is valid until it is replaced or deregistered', async () => {
    const folder = temporaryFolder();
    const store = openEmbeddedStore(folder);
    const table = store.table<AgentRegistration>('agents');
    for (const [agentId, credential] of [
      ['crawler', 'c1'],
      ['gone', 'g1'],
      ['reader', 'r1'],
    ] as const)
      await table.put(credential, registration(agentId, credential));
    const agents = createEmbeddedAgents(store);
    expect(Array.from(agents.load(), ({ credential }) => credential)).toEqual(['c1', 'g1', 'r1']);
    await agents.save(registration('crawler', 'c2'));
    await agents.remove(keyOf('gone'));
    await store.close();
    expect(credentialsIn(folder)).toEqual(['c2', 'r1']);
  });

  test.each([
    ['new', undefined],
    ['open to all', 0o777],
  ])('the store is closed to other users, its folder being %s', (_, mode) => {
    const folder = temporaryFolder();
    if (mode !== undefined) mkdirSync(join(folder, 'store'));
    if (mode !== undefined) chmodSync(join(folder, 'store'), mode);
    temporaryStore(folder);
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    expect(modeOf(join(folder, 'store'))).toBe('700');
    expect(modeOf(join(folder, 'store', STORE_FILE))).toBe('600');
  });

  test('when the writing thread dies, what it was writing is refused; the next succeeds', async () => {
    const table = temporaryStore().table<number>('numbers');
    const started = once(process, 'worker') as Promise<[Worker]>;
    const first = table.put('first', 1);
    const [thread] = await started;
    await thread.terminate();
    await expect(first).rejects.toMatchObject({ name: 'StoreUnwritable', code: 'EIO' });
    await table.put('second', 2);
    expect(table.get('second')).toBe(2);
  });

  test('every row acknowledged before kill -9 is there afterwards', async () => {
    const folder = temporaryFolder();
    const script = join(folder, 'write.mjs');
    writeFileSync(
      script,
      `import { openEmbeddedStore } from ${JSON.stringify(BUILT)};
       const table = openEmbeddedStore(${JSON.stringify(folder)}).table('numbers');
       for (let n = 0; ; n += 1) {
         await Promise.all([table.put(String(n), n), table.put('b' + n, n)]);
         process.stdout.write(n + '\\n');
       }`,
    );
    const child = spawn(process.execPath, [script]);
    let acknowledged = '';
    child.stdout.on('data', (chunk: Buffer) => {
      acknowledged += chunk.toString();
      if (acknowledged.length > 200) child.kill('SIGKILL');
    });
    await once(child, 'close');
    const last = Number(acknowledged.split('\n').at(-2));
    expect(last).toBeGreaterThan(10);
    const table = temporaryStore(folder).table<number>('numbers');
    const acknowledgedRows = Array.from({ length: last + 1 }, (_, n) => n);
    expect(acknowledgedRows.filter((n) => table.get(String(n)) !== n || table.get(`b${n}`) !== n)).toEqual([]);
  });
});

describe('damage of the embedded store', () => {
  /** A store with 400 rows, closed; returns its file. */
  async function filledStore(dataDir: string): Promise<string> {
    const store = openEmbeddedStore(dataDir);
    const [keys, agents] = [store.table<object>('keys'), store.table<object>('agents')];
    await Promise.all(
      Array.from({ length: 200 }, (_, nth) => [
        keys.put(`k${nth}`, { text: `k${nth}`.repeat(60) }),
        agents.put(`a${nth}`, { text: `a${nth}`.repeat(nth % 50 === 0 ? 3_000 : 60) }),
      ]).flat(),
    );
    await store.close();
    return store.path;
  }

  /** Returns the error of a start with the file: undefined if it opens it and reads every row. */
  function damageOf(dataDir: string): unknown {
    let store: EmbeddedStore | undefined;
    try {
      store = openEmbeddedStore(dataDir);
      for (const name of ['keys', 'agents']) for (const row of store.table(name).entries()) void row;
      return undefined;
    } catch (error) {
      return error;
    } finally {
      void store?.close();
    }
  }

  test('a flipped bit is found wherever rows or the order of pages hold it', async () => {
    const dataDir = temporaryFolder();
    const path = await filledStore(dataDir);
    const whole = readFileSync(path);
    /** Finds the places of the text, also in parts of pages that are free again. */
    const placesOf = (text: string, offset = 0): number[] => {
      const places: number[] = [];
      for (let at = whole.indexOf(text); at !== -1; at = whole.indexOf(text, at + 1)) places.push(at + offset);
      return places;
    };
    const missed: number[][] = [];
    // A row, one on pages of its own, a key, and the heads of all pages.
    const places = [
      placesOf('{"text":"k77'),
      [whole.lastIndexOf('a150'.repeat(500)) + 1_000],
      placesOf('{"text":"a99', -2),
      ...['a0', 'a120', 'a99'].map((row) => placesOf(`agents${row}{"`, 3)), // the table of the first row, and of others
      ...Array.from({ length: whole.length / 4096 - 1 }, (_, nth) => [(nth + 1) * 4096]),
    ];
    for (const place of places) {
      const bytes = Buffer.from(whole);
      for (const at of place) bytes[at]! ^= 0x10;
      writeFileSync(path, bytes);
      const damage = damageOf(dataDir);
      if (damage === undefined) missed.push(place);
      else expect(damage).toMatchObject({ name: 'StoreDamaged', path });
    }
    expect(places.length).toBeGreaterThan(20);
    expect(missed).toEqual([]);
    writeFileSync(path, whole);
    expect(damageOf(dataDir)).toBeUndefined();
  });

  test.each([
    ['cut short', (path: string) => truncateSync(path, statSync(path).size / 2)],
    ['cut to one page', (path: string) => truncateSync(path, 4096)],
    ['written over', (path: string) => writeFileSync(path, Buffer.alloc(20_000, 'x'))],
    ['partly zero', (path: string) => writeFileSync(path, readFileSync(path).fill(0, 8192, 40_960))],
  ])('a store file that was %s keeps the gateway from starting, with what to do', async (_, damage) => {
    const dataDir = temporaryFolder();
    const path = await filledStore(dataDir);
    damage(path);
    const found = readFileSync(path);
    await expect(openStore(dataDir, QUIET)).rejects.toThrow(
      new RegExp(
        `^${path} is damaged \\(.+\\); restore the folder ${join(dataDir, 'store')} from a backup, or remove it to start without`,
      ),
    );
    expect(readFileSync(path).equals(found)).toBe(true);
  });

  test('a file of a later release is refused in its own words', async () => {
    const dataDir = temporaryFolder();
    const path = await filledStore(dataDir);
    const bytes = readFileSync(path);
    bytes.writeUInt32BE(2, 60); // where SQLite keeps the number that applications give their layout
    writeFileSync(path, bytes);
    await expect(openStore(dataDir, QUIET)).rejects.toThrow(
      `${path} has layout 2, but this release supports only 1; start the release that wrote it, or restore the backup from before the upgrade`,
    );
  });

  test('a file that cannot be opened is reported with the error of the system', async () => {
    const dataDir = temporaryFolder();
    const path = await filledStore(dataDir);
    rmSync(path);
    mkdirSync(path); // for root too, whom no mode keeps out
    await expect(openStore(dataDir, QUIET)).rejects.toThrow(`illegal operation on a directory, open '${path}'`);
  });

  test('a store that another program reads is closed, and loses nothing', async () => {
    const dataDir = temporaryFolder();
    const store = openEmbeddedStore(dataDir);
    const table = store.table<number>('numbers');
    await table.put('first', 1);
    // In a process of its own, as an operator's sqlite3 would be, in the middle of reading.
    const script = join(dataDir, 'read.mjs');
    writeFileSync(
      script,
      `import { DatabaseSync } from ${JSON.stringify(import.meta.resolve('@photostructure/sqlite'))};
       const database = new DatabaseSync(${JSON.stringify(store.path)});
       database.exec('BEGIN');
       process.stdout.write(String(database.prepare('SELECT count(*) AS n FROM rows').get().n));
       setInterval(() => undefined, 1_000);`,
    );
    const reader = spawn(process.execPath, [script]);
    onTestFinished(() => void reader.kill('SIGKILL'));
    await once(reader.stdout, 'data');
    await table.put('second', 2);
    await store.close();
    expect([...temporaryStore(dataDir).table<number>('numbers').entries()]).toEqual([
      ['first', 1],
      ['second', 2],
    ]);
  });

  test('loses no writes that were not yet moved into the file with a torn end', async () => {
    const dataDir = temporaryFolder();
    const path = await filledStore(dataDir);
    const database = new StoreDatabase(path);
    database.commit([['keys', 'first', '1']]);
    database.commit([['keys', 'second', '2']]);
    // A power cut in the middle of the second commit: half of it has reached the disk.
    const after = temporaryFolder();
    mkdirSync(join(after, 'store'));
    copyFileSync(path, join(after, 'store', STORE_FILE));
    const log = readFileSync(`${path}-wal`);
    writeFileSync(join(after, 'store', `${STORE_FILE}-wal`), log.subarray(0, log.length - 2_000));
    database.close();
    const keys = temporaryStore(after).table<number>('keys');
    expect([keys.get('first'), keys.get('second')]).toEqual([1, undefined]);
  });
});
