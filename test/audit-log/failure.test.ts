/**
 * The log under a full disk, a killed process and a second process. Real files, real limits, built files in the
 * children.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyAuditLog } from '../../src/audit-log/verify.ts';
import { acquireLock, openAuditWriter } from '../../src/audit-log/writer.ts';
import { append, freshDirectory, NOON_MS, openWriter } from './log.ts';

const CHILD = fileURLToPath(new URL('writer-child.mjs', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/src/audit-log/writer.js', import.meta.url));
if (!existsSync(BUILT)) throw new Error('these tests run the built files; run `npm run build` first');

const draftOf = (characters: number) => ({ reason: 'x'.repeat(characters) });

describe('failure', () => {
  test('a batch over the file size limit leaves no trace, and the log continues', async () => {
    const directory = freshDirectory();
    // In blocks of 512 or 1024 bytes, as the shell counts; only the file system decides where the write stops.
    const { stdout } = spawnSync(
      'bash',
      ['-c', 'ulimit -f 200; exec "$0" "$@"', process.execPath, CHILD, directory, 'never', 'until-full'],
      { encoding: 'utf8' },
    );
    const lines = stdout.trimEnd().split('\n');
    const acknowledged = Number(lines.at(-2));
    const [code, kind, , head, , then] = (lines.at(-1) ?? '').split(' ');
    expect({ code, kind }).toEqual({ code: 'EFBIG', kind: 'audit-write-failed' });
    // A batch of one may still fit where a larger one did not.
    expect(Number(head)).toBe(acknowledged + (then === 'ok' ? 1 : 0));
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, tornBytes: 0, entries: Number(head) });
    const writer = openWriter(directory);
    expect(append(writer, [draftOf(200_000)])).toBe(Number(head) + 1);
    writer.close();
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: Number(head) + 1 });
  });

  function mountSmallDisk(): string | undefined {
    const directory = freshDirectory();
    const disk = join(directory, 'disk');
    mkdirSync(disk);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]).status !== 0) return undefined;
    onTestFinished(() => {
      spawnSync('umount', ['-l', disk]);
    });
    return disk;
  }

  test('on a full disk the append fails whole and succeeds later with the next id', async (context) => {
    const disk = mountSmallDisk();
    if (disk === undefined)
      return context.skip('mounting a small file system needs a privilege this machine does not give');
    const ballast = join(disk, 'ballast');
    writeFileSync(ballast, Buffer.alloc(300_000));
    const directory = join(disk, 'audit');
    const writer = openWriter(directory, { fsync: 'always', segmentBytes: 200_000 });
    let acknowledged = 0;
    const batch = Array.from({ length: 30 }, () => draftOf(1000));
    for (;;) {
      const before = writer.head();
      try {
        append(writer, batch);
        acknowledged += 30;
      } catch (error) {
        expect(String(error)).toContain('ENOSPC');
        expect(writer.head()).toEqual(before);
        break;
      }
    }
    expect(acknowledged).toBeGreaterThan(0);
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: acknowledged, tornBytes: 0 });
    // A gateway that is started on a full disk starts.
    writer.close();
    writeFileSync(join(disk, 'filler'), '');
    spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4096']);
    const again = openWriter(directory);
    expect(again.head().id).toBe(acknowledged);
    expect(() => append(again, batch)).toThrow('ENOSPC');
    rmSync(ballast);
    expect(append(again, batch)).toBe(acknowledged + 1);
    again.close();
    expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, entries: acknowledged + 30, tornBytes: 0 });
  });

  test('a writer killed at any moment loses no acknowledged entry and drops its lock', async () => {
    const directory = freshDirectory();
    for (let round = 0; round < 3; round += 1) {
      const child = spawn(process.execPath, [CHILD, directory, round % 2 === 0 ? 'never' : 'always', 'forever'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => {
        child.kill('SIGKILL');
      });
      let said = '';
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (text: Buffer) => {
          said += text.toString();
          if (said.length > 500 + round * 700) child.kill('SIGKILL');
        });
        child.on('close', () => resolve());
      });
      const whole = said.slice(0, said.lastIndexOf('\n')).split('\n');
      const acknowledged = Number(whole.at(-1));
      expect(acknowledged).toBeGreaterThan(0);
      const writer = openWriter(directory);
      expect(writer.head().id).toBeGreaterThanOrEqual(acknowledged);
      writer.close();
      expect(await verifyAuditLog(directory)).toMatchObject({ ok: true, tornBytes: 0 });
    }
  });

  test('a second process is refused the log and learns who holds it', () => {
    const directory = freshDirectory();
    const writer = openWriter(directory);
    const second = spawnSync(process.execPath, [CHILD, directory, 'never', 'until-full'], { encoding: 'utf8' });
    expect({ status: second.status, stdout: second.stdout }).toEqual({
      status: 3,
      stdout: `locked by ${process.pid}\n`,
    });
    writer.close();
  });

  test.each([
    ['there is no command that takes the kernel’s lock', undefined],
    ['the file system has no such locks', 'echo >&2 flock: 3: No locks available; exit 71'],
  ])('opens without the log where %s', (_why, flock) => {
    const directory = freshDirectory();
    const path = process.env.PATH;
    onTestFinished(() => {
      process.env.PATH = path;
    });
    process.env.PATH = directory;
    if (flock !== undefined) writeFileSync(join(directory, 'flock'), `#!/bin/sh\n${flock}\n`, { mode: 0o700 });
    expect(acquireLock(directory).ok).toBe(true);
  });

  test('the log and its folder are readable by their owner only', () => {
    const directory = join(freshDirectory(), 'audit');
    const opened = openAuditWriter({ directory, fsync: 'never', nowMs: () => NOON_MS });
    if (!opened.ok) throw new Error('locked');
    append(opened.value.writer, [{}]);
    opened.value.writer.close();
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory, '0000000000000001.ndjson')).mode & 0o777).toBe(0o600);
  });
});
