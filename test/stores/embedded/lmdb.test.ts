import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { Key } from 'lmdb';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AgentRegistration } from '../../../src/core/agents/agents.ts';
import { agentKeyOf, type SecretDigest } from '../../../src/core/base/ids.ts';
import type { AgentStore } from '../../../src/ports/ports.ts';
import { createLmdbAgents } from '../../../src/stores/embedded/agents.ts';
import { lockDataDir } from '../../../src/stores/embedded/data-dir.ts';
import { type EmbeddedStore, openEmbeddedStore, type Table } from '../../../src/stores/embedded/lmdb.ts';
import { temporaryFolder, temporaryStore } from '../../support/harness.ts';

/** As it was built: another process reads no TypeScript. */
const BUILT = new URL('../../../dist/src/stores/embedded/lmdb.js', import.meta.url).href;

describe('lmdb', () => {
  test('tables are separate and ordered by key, and a removed row is gone', async () => {
    const store = temporaryStore();
    const fruits = store.table<string, { readonly sweet: boolean }>('fruits');
    const stones = store.table<number, string>('stones');
    await Promise.all([
      fruits.put('pear', { sweet: true }),
      fruits.put('lemon', { sweet: false }),
      stones.put(10, 'ten'),
      stones.put(9, 'nine'),
    ]);
    await fruits.remove('pear');
    expect([...fruits.entries()]).toEqual([['lemon', { sweet: false }]]);
    expect([...stones.entries()]).toEqual([
      [9, 'nine'],
      [10, 'ten'],
    ]);
    expect(fruits.get('pear')).toBeUndefined();
  });

  test('a transaction that throws changes nothing', async () => {
    const table = temporaryStore().table<string, number>('t');
    await table.put('a', 1);
    const failing = table.transaction((inside) => {
      inside.put('a', 2);
      throw new Error('a bug');
    });
    await expect(failing).rejects.toThrow('a bug');
    expect(table.get('a')).toBe(1);
  });

  test('a replaced or deregistered token returns with no restart', async () => {
    const folder = temporaryFolder();
    const registration = (agentId: string, credential: string) => ({
      identity: { orgId: 'acme', teamId: 'search', agentId },
      credential: credential as SecretDigest,
      registeredAtMs: 1,
      parent: undefined,
    });
    const keyOf = (agentId: string) => agentKeyOf(registration(agentId, '').identity);
    /** What a gateway knows of agents when it has started. */
    const run = async (work: (agents: AgentStore) => Promise<unknown>): Promise<readonly string[]> => {
      const store = openEmbeddedStore(folder);
      const agents = createLmdbAgents(store);
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
    const registration = (credential: string) => ({
      identity: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      credential: credential as SecretDigest,
      registeredAtMs: 1,
      parent: undefined,
    });
    const store = openEmbeddedStore(folder);
    let isFull = false;
    const agents = createLmdbAgents(refusing(store, () => isFull));
    await agents.save(registration('old'));
    await agents.save(registration('unrecorded'));
    isFull = true;
    await expect(agents.save(registration('old'))).rejects.toThrow('full');
    isFull = false;
    await agents.save(registration('new'));
    await store.close();
    expect(Array.from(createLmdbAgents(temporaryStore(folder)).load(), ({ credential }) => credential)).toEqual([
      'new',
    ]);
  });

  test('a token of an earlier release is valid until it is replaced or deregistered', async () => {
    const folder = temporaryFolder();
    const registration = (agentId: string, credential: string) => ({
      identity: { orgId: 'acme', teamId: 'search', agentId },
      credential: credential as SecretDigest,
      registeredAtMs: 1,
      parent: undefined,
    });
    const store = openEmbeddedStore(folder);
    const table = store.table<string, AgentRegistration>('agents');
    for (const [agentId, credential] of [
      ['crawler', 'c1'],
      ['gone', 'g1'],
      ['reader', 'r1'],
    ] as const)
      await table.put(credential, registration(agentId, credential));
    const agents = createLmdbAgents(store);
    expect(Array.from(agents.load(), ({ credential }) => credential)).toEqual(['c1', 'g1', 'r1']);
    await agents.save(registration('crawler', 'c2'));
    await agents.remove(agentKeyOf(registration('gone', '').identity));
    await store.close();
    expect(
      Array.from(createLmdbAgents(temporaryStore(folder)).load(), ({ credential }) => credential).toSorted(),
    ).toEqual(['c2', 'r1']);
  });

  /** The store, on a disk that takes nothing while it is full. */
  function refusing(store: EmbeddedStore, isFull: () => boolean): EmbeddedStore {
    const table = <K extends Key, Row>(name: string): Table<K, Row> => {
      const whole = store.table<K, Row>(name);
      return {
        ...whole,
        transaction: (action) => (isFull() ? Promise.reject(new Error('full')) : whole.transaction(action)),
      };
    };
    return { ...store, table };
  }

  test.each([
    ['new', undefined],
    ['open to all', 0o777],
  ])('the store is closed to other users, its folder being %s', (_, mode) => {
    const folder = temporaryFolder();
    if (mode !== undefined) mkdirSync(join(folder, 'store'));
    if (mode !== undefined) chmodSync(join(folder, 'store'), mode);
    temporaryStore(folder);
    expect((statSync(join(folder, 'store')).mode & 0o777).toString(8)).toBe('700');
  });

  test.each([
    ['row', 'table.put(n, n)'],
    ['transaction', 'table.transaction((inside) => inside.put(n, n))'],
  ])('every %s acknowledged before kill -9 is there afterwards', async (_, write) => {
    const folder = temporaryFolder();
    const child = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      `
    import { openEmbeddedStore } from ${JSON.stringify(BUILT)};
    const table = openEmbeddedStore(${JSON.stringify(folder)}).table('numbers');
    for (let n = 0; ; n += 1) { await ${write}; process.stdout.write(n + '\\n'); }`,
    ]);
    let acknowledged = '';
    child.stdout.on('data', (chunk: Buffer) => {
      acknowledged += chunk.toString();
      if (acknowledged.length > 200) child.kill('SIGKILL');
    });
    await once(child, 'close');
    const last = Number(acknowledged.split('\n').at(-2));
    expect(last).toBeGreaterThan(10);
    expect(temporaryStore(folder).table<number, number>('numbers').get(last)).toBe(last);
  });

  test('one process at a time holds a data directory, and its death frees it', async () => {
    const folder = temporaryFolder();
    const first = await lockDataDir(folder);
    expect(await lockDataDir(folder)).toEqual({
      ok: false,
      fault: { kind: 'data_dir_in_use', path: folder, holder: `process ${process.pid}` },
    });
    if (first.ok) await first.value.release();
    const child = spawn(process.execPath, [
      '-e',
      `
    require('net').createServer((socket) => socket.end('1')).listen(${JSON.stringify(join(folder, 'lock'))}, () => process.stdout.write('up'));`,
    ]);
    await once(child.stdout, 'data');
    expect(await lockDataDir(folder)).toMatchObject({ ok: false, fault: { holder: 'process 1' } });
    child.kill('SIGKILL'); // the socket stays behind, with nobody listening
    await once(child, 'close');
    const third = await lockDataDir(folder);
    expect(third.ok).toBe(true);
    if (third.ok) await third.value.release();
  });

  test('a suspended requester does not keep the lock from being released', async () => {
    const folder = temporaryFolder();
    const lock = await lockDataDir(folder);
    expect(lock.ok).toBe(true);
    const asker = connect({ path: join(folder, 'lock'), allowHalfOpen: true });
    onTestFinished(() => void asker.destroy());
    await once(asker, 'connect');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, 2_000, 'still held');
    });
    if (lock.ok) expect(await Promise.race([lock.value.release().then(() => 'released'), late])).toBe('released');
    clearTimeout(timer);
  });

  test('a suspended gateway still holds its data directory', async () => {
    const folder = temporaryFolder();
    const still = createServer(() => undefined).listen(join(folder, 'lock'));
    onTestFinished(() => void still.close());
    await once(still, 'listening');
    expect(await lockDataDir(folder)).toMatchObject({ ok: false, fault: { holder: 'another process' } });
  });

  test('a data directory may have a long path, and a new one is private and empty', async () => {
    const folder = join(temporaryFolder(), 'x'.repeat(120), 'data');
    const first = await lockDataDir(folder);
    expect(first.ok).toBe(true);
    expect({ mode: (statSync(folder).mode & 0o777).toString(8), files: readdirSync(folder) }).toEqual({
      mode: '700',
      files: ['lock'],
    });
    expect(await lockDataDir(folder)).toMatchObject({ ok: false, fault: { holder: `process ${process.pid}` } });
    if (first.ok) await first.value.release();
    const second = await lockDataDir(folder);
    expect(second.ok).toBe(true);
    if (second.ok) await second.value.release();
  });

  test('a stale lock taken over belongs to the new holder alone', async () => {
    const folder = temporaryFolder();
    const [path, another] = [join(folder, 'lock'), join(folder, 'another')];
    const other = createServer((socket) => socket.end('1')).listen(another);
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const takeIt = () => {
      rmSync(path);
      linkSync(another, path);
    };
    const late = lockDataDir(folder);
    while (!existsSync(path)) await new Promise(setImmediate);
    takeIt();
    const held = { ok: false, fault: { kind: 'data_dir_in_use', path: folder, holder: 'process 1' } };
    expect(await late).toEqual(held);
    rmSync(path);
    const early = await lockDataDir(folder);
    takeIt();
    if (early.ok) await early.value.release();
    expect({ isOk: early.ok, lockDataDir: await lockDataDir(folder) }).toEqual({ isOk: true, lockDataDir: held });
  });

  test('of many that start together on a stale lock one gets it', async () => {
    const folder = temporaryFolder();
    const child = spawn(process.execPath, [
      '-e',
      `require('net').createServer().listen(${JSON.stringify(join(folder, 'lock'))}, () => process.stdout.write('up'));`,
    ]);
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    const locks = await Promise.all(Array.from({ length: 8 }, () => lockDataDir(folder)));
    expect(locks.filter(({ ok }) => ok)).toHaveLength(1);
    for (const lock of locks) if (lock.ok) await lock.value.release();
  });

  test('names a lock file that cannot be opened instead of crashing in the library', async () => {
    const dataDir = temporaryFolder();
    await openEmbeddedStore(dataDir).close();
    const lock = join(dataDir, 'store', 'lock.mdb');
    rmSync(lock);
    mkdirSync(lock); // for root too, whom no mode keeps out
    expect(() => openEmbeddedStore(dataDir)).toThrow(lock);
  });
});
