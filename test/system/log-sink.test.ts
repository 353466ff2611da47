import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LogSink } from '../../src/system/log.ts';
import { eventually } from '../support/eventually.ts';

/**
 * A pipe whose reader comes and goes: while there is none, nothing can be written to it, and never more at once than it
 * holds.
 */
function openPipe() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-log-'));
  const path = join(folder, 'pipe');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  const openReader = (): number => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const first = openReader();
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  let reader = first;
  onTestFinished(() => {
    for (const fd of [reader, writer]) closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const bytes = Buffer.alloc(64 * 1024);
  let text = '';
  return {
    writer,
    leave: (): void => closeSync(reader),
    comeBack: (): void => {
      reader = openReader();
    },
    /** All that has come so far. */
    read: (): string => {
      try {
        for (let count = 1; count > 0; text += bytes.toString('latin1', 0, count)) count = readSync(reader, bytes);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      return text;
    },
  };
}

describe('log sink', () => {
  test('lines that cannot be written wait and are written in order, each once', async () => {
    const { writer, leave, comeBack, read } = openPipe();
    const sink = new LogSink(writer);
    sink.write('one\n');
    await eventually(() => expect(read()).toBe('one\n'));
    leave();
    for (const line of ['two\n', 'three\n']) sink.write(line);
    await sleep(250); // in which it is tried in vain, more than once
    sink.write('four\n');
    comeBack();
    await eventually(() => expect(read()).toBe('one\ntwo\nthree\nfour\n'));
  });

  test('lines beyond a waiting mebibyte are dropped and counted; short ones still fit', async () => {
    const { writer, leave, comeBack, read } = openPipe();
    const sink = new LogSink(writer);
    leave();
    sink.write('first\n');
    for (const letter of ['a', 'b', 'c', 'd']) sink.write(`${letter.repeat(400_000)}\n`);
    sink.write('short\n');
    comeBack();
    const shape = (): string[] =>
      read()
        .replaceAll(/(.)\1{9,}/g, '$1…')
        .split('\n')
        .map((line) => (line.startsWith('{') ? JSON.stringify({ ...JSON.parse(line), time: undefined }) : line));
    await eventually(() =>
      expect(shape()).toEqual([
        'first',
        'a…',
        'b…',
        'short',
        '{"level":"warn","lines":2,"msg":"log lines were lost: the log could not be written or was not read"}',
        '',
      ]),
    );
    sink.write('after\n');
    await eventually(() => expect(shape().slice(-2)).toEqual(['after', '']));
  });

  test("writes the log of an exit's turn to its last line", () => {
    const program = `
    import { LogSink } from ${JSON.stringify(new URL('../../dist/src/system/log.js', import.meta.url).href)};
    const sink = new LogSink(2);
    sink.write('before\\n');
    setTimeout(() => {
      for (let line = 1; line <= 3; line += 1) sink.write('line ' + line + '\\n');
      void Promise.resolve().then(() => { sink.write('last words\\n'); process.exit(3); });
    }, 50);
  `;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 3, stderr: 'before\nline 1\nline 2\nline 3\nlast words\n' });
  });
});
