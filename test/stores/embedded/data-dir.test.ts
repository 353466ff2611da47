import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, readdirSync, rmSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { lockDataDir } from '../../../src/stores/embedded/data-dir.ts';
import { temporaryFolder } from '../../support/harness.ts';

describe('data directory', () => {
  test('is held by one process at a time, whose death frees it', async () => {
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
      timer = setTimeout(resolve, 60_000, 'still held');
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

  test('goes to one of many that start together on a stale lock', async () => {
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
});
