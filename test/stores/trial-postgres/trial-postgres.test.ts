import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { stopLeftover } from '../../../src/stores/trial-postgres/leftover.ts';
import type { EmbeddedOptions, EmbeddedPostgres } from '../../../src/stores/trial-postgres/trial-postgres.ts';
import { SILENT, startTestPostgres } from '../../support/database-server.ts';
import { eventually } from '../../support/eventually.ts';
import { folderForDatabase, layDatabase } from '../../support/postgres.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
describe('embedded postgres', () => {
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });

  async function temporaryDir(): Promise<string> {
    const dir = folderForDatabase();
    cleanUps.push(() => rm(dir, { recursive: true, force: true }));
    return dir;
  }

  /** For what happens to a database that is there already. */
  async function dirWithDatabase(): Promise<string> {
    const dir = await temporaryDir();
    await layDatabase(dir);
    return dir;
  }

  async function start(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
    const server = await startTestPostgres({ dataDir, ...options });
    cleanUps.push(() => server.stop());
    return server;
  }

  async function ask<Row extends object>(url: string, text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query<Row & pg.QueryResultRow>(text)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  const pidOf = async (dataDir: string): Promise<number> =>
    Number((await readFile(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[0]);

  test('keeps its rows over restarts and is gone after stop', async () => {
    const dataDir = await dirWithDatabase();
    const first = await start(dataDir);
    await ask(first.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    await first.stop();
    await expect(ask(first.url, 'SELECT 1')).rejects.toThrow();
    const second = await start(dataDir);
    expect(await ask(second.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('listens on loopback only, with a private password and private files alone', async () => {
    const dataDir = await temporaryDir();
    await mkdir(join(dataDir, 'postgres'), { recursive: true });
    await writeFile(join(dataDir, 'postgres', 'password.0123abcd.partial'), 'half'); // left by a killed gateway
    const { url } = await start(dataDir);
    expect(await ask(url, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(ask(wrong.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
    expect((await stat(join(dataDir, 'postgres', 'password'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(dataDir, 'postgres', 'cluster'))).mode & 0o777).toBe(0o700);
    expect((await readdir(join(dataDir, 'postgres'))).filter((name) => !name.startsWith('native-')).sort()).toEqual([
      'cluster',
      'log',
      'password',
    ]);
  });

  test('starts also while the wall clock is being set, as at boot', async () => {
    let nowMs = Date.now();
    const now = vi.spyOn(Date, 'now').mockImplementation(() => (nowMs += 3_600_000));
    const { url } = await start(await dirWithDatabase()).finally(() => now.mockRestore());
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  test('a database that dies is restarted at the same address', async () => {
    const dataDir = await dirWithDatabase();
    const { url } = await start(dataDir);
    const killed = await pidOf(dataDir);
    process.kill(killed, 'SIGKILL');
    await eventually(async () => expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]));
    expect(await pidOf(dataDir)).not.toBe(killed);
  });

  test('a start cancelled before the database was created creates none', async () => {
    const dataDir = await temporaryDir();
    await expect(start(dataDir, { signal: AbortSignal.abort(new Error('called off')) })).rejects.toThrow('called off');
    expect(existsSync(join(dataDir, 'postgres', 'cluster'))).toBe(false);
  });

  test('stops the server of a killed gateway before the next one starts', async () => {
    const dataDir = await dirWithDatabase();
    const orphaned = await start(dataDir); // a second gateway knows nothing of it but its files
    await ask(orphaned.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    const next = await start(dataDir);
    expect(next.url).not.toBe(orphaned.url);
    expect(await ask(next.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('a server that does not stop in time is killed, loses nothing, and starts again', async () => {
    const dataDir = await dirWithDatabase();
    const hung = await start(dataDir);
    await ask(hung.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    const pid = await pidOf(dataDir);
    process.kill(pid, 'SIGSTOP');
    // Well before the 15 seconds that it is given by itself.
    expect(
      await Promise.race([
        hung.stop(300).then(() => 'ended'),
        new Promise((resolve) => setTimeout(resolve, 10_000, 'still there')),
      ]),
    ).toBe('ended');
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    const next = await start(dataDir);
    expect(await ask(next.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('a database still being created by a killed gateway blocks no other', async () => {
    const dataDir = await temporaryDir();
    const [unfinished, cluster] = ['unfinished', 'cluster'].map((name) => join(dataDir, 'postgres', name)) as [
      string,
      string,
    ];
    await mkdir(unfinished, { recursive: true });
    let written = 0;
    const orphan = setInterval(() => {
      // As initdb does: files in folders that are there.
      if (existsSync(cluster)) clearInterval(orphan);
      else if (existsSync(unfinished)) writeFileSync(join(unfinished, `base-${(written += 1)}`), '');
    }, 1);
    const server = await start(dataDir).finally(() => clearInterval(orphan));
    expect(written).toBeGreaterThan(0);
    expect(await ask(server.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(existsSync(unfinished)).toBe(false);
  });

  test('stops a leftover server in a folder that has moved since', async () => {
    const [dataDir, elsewhere] = [await dirWithDatabase(), await temporaryDir()];
    const orphaned = await start(dataDir);
    await ask(orphaned.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    const pid = await pidOf(dataDir);
    await rename(join(dataDir, 'postgres'), join(elsewhere, 'postgres'));
    const next = await start(elsewhere);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(await ask(next.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('kills a leftover server that does not stop, and loses nothing', async () => {
    const dataDir = await dirWithDatabase();
    const hung = await start(dataDir);
    await ask(hung.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    const pid = await pidOf(dataDir);
    process.kill(pid, 'SIGSTOP');
    await stopLeftover(join(dataDir, 'postgres', 'cluster'), () => hung.url, 200, SILENT);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    await hung.stop();
    const next = await start(dataDir);
    expect(await ask(next.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('leaves alone another program with the process id of an old server', async () => {
    const dataDir = await dirWithDatabase();
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { cwd: dataDir, stdio: 'ignore' });
    cleanUps.push(async () => other.kill('SIGKILL'));
    const cluster = join(dataDir, 'postgres', 'cluster');
    await writeFile(
      join(cluster, 'postmaster.pid'),
      [other.pid, cluster, 1, 1, '', '127.0.0.1', '', 'ready', ''].join('\n'),
    );
    const { url } = await start(dataDir);
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect({ exitCode: other.exitCode, signalCode: other.signalCode }).toEqual({ exitCode: null, signalCode: null });
  });

  test("starts after a power loss left the server's pid file empty", async () => {
    const dataDir = await dirWithDatabase();
    await writeFile(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), '');
    const { url } = await start(dataDir);
    expect(await ask(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  test('a copy elsewhere, with modes that PostgreSQL refuses, has the rows', async () => {
    const [dataDir, elsewhere] = [await dirWithDatabase(), await temporaryDir()];
    const first = await start(dataDir);
    await ask(first.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    await first.stop();
    await rename(join(dataDir, 'postgres'), join(elsewhere, 'postgres'));
    await chmod(join(elsewhere, 'postgres', 'cluster'), 0o2775); // what a volume shared with a group makes of it
    const second = await start(elsewhere);
    expect(await ask(second.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test('a cluster without its password is refused at once, by the file at fault', async () => {
    const dataDir = await dirWithDatabase();
    const [file, cluster] = [join(dataDir, 'postgres', 'password'), join(dataDir, 'postgres', 'cluster')];
    const kept = await readFile(file, 'utf8');
    await rm(file);
    await expect(start(dataDir)).rejects.toThrow(
      `${file} is missing; restore it from the same backup as ${cluster}, which accepts no other password`,
    );
    await writeFile(file, 'of another copy\n');
    await expect(start(dataDir)).rejects.toThrow(
      `rejects the password in ${file}; restore that file from the same backup as ${cluster}`,
    );
    await writeFile(file, kept);
    await start(dataDir);
  });

  test("a start that fails gives PostgreSQL's own reason", async () => {
    const dataDir = await dirWithDatabase();
    await expect(start(dataDir, { settings: { shared_buffers: 'much' } })).rejects.toThrow(
      '(exit status 1: invalid value for parameter "shared_buffers": "much"); its log is ',
    );
  });

  const isRoot = process.getuid?.() === 0;

  test.runIf(isRoot)('root runs it as another user where it must, and reverts that when not needed', async () => {
    const dataDir = await temporaryDir();
    const before = await start(dataDir, { runAs: { kind: 'account', uid: 65_534, gid: 65_534 } });
    await ask(before.url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    expect((await stat(join(dataDir, 'postgres', 'cluster'))).uid).toBe(65_534);
    expect([
      (await stat(dataDir)).mode & 0o777,
      (await stat(join(dataDir, 'postgres', 'password'))).mode & 0o777,
    ]).toEqual([0o711, 0o600]);
    await before.stop();
    const after = await start(dataDir);
    expect(await ask(after.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  });

  test.runIf(isRoot)('a folder that the other user cannot reach is refused with the blocking folder', async () => {
    const closed = await temporaryDir(); // 0700
    await expect(start(join(closed, 'data'), { runAs: { kind: 'account', uid: 65_534, gid: 65_534 } })).rejects.toThrow(
      `${closed} is closed to it`,
    );
  });

  test.runIf(isRoot)('root changes nothing in a folder that it cannot use without privileges', async () => {
    const dataDir = await dirWithDatabase();
    const cluster = join(dataDir, 'postgres', 'cluster');
    for (const path of [dataDir, cluster]) await chown(path, 65_534, 65_534);
    await expect(start(dataDir, { runAs: { kind: 'namespace' } })).rejects.toThrow(
      `${dataDir} is closed to it; run the gateway as the account that owns the folder`,
    );
    expect((await stat(cluster)).uid).toBe(65_534);
  });
});
