/** The file of pins, changed by several processes at once: no pin is lost, and no lock of another one is removed. */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PinStore } from '../../src/mcp/pin-store.ts';
import { compare } from '../../src/mcp/pins.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/harness.ts';

const PINNING = fileURLToPath(new URL('pinning.mjs', import.meta.url));
const TOOL = { name: 'add', description: 'adds', inputSchema: { type: 'object' } };

type Way = 'paused' | 'without-links';
type Pinning = { readonly tell: (line: string) => void; readonly answer: () => Promise<unknown> };

async function startPinning(path: string, ways: readonly Way[] = []): Promise<Pinning> {
  const child = spawn(process.execPath, [PINNING, path, ...ways], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (): Promise<unknown> => (await lines.next()).value;
  expect(await answer()).toBe('ready');
  return { tell: (line) => void child.stdin.write(`${line}\n`), answer };
}

const leaveStaleLock = (path: string): void => {
  writeFileSync(`${path}.lock`, 'a process that died');
  utimesSync(`${path}.lock`, 1, 1);
};

const serversIn = (path: string): string[] => [...new PinStore(path).pins.keys()].sort();

describe('file of pins', () => {
  const ways: readonly (readonly [string, readonly Way[]])[] = [
    ['', []],
    [', without links', ['without-links']],
  ];
  test.each(ways)('processes that find a stale lock at once lose no pin%s', async (_, ways) => {
    const path = join(temporaryFolder(), 'mcp-pins.json');
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const processes = await Promise.all(names.map(() => startPinning(path, ways)));
    for (const round of [1, 2, 3]) {
      leaveStaleLock(path);
      processes.forEach((each, at) => {
        each.tell(`${names[at]}${round}`);
      });
      for (const each of processes) expect(await each.answer()).toBe('done');
      expect(readdirSync(join(path, '..'))).toEqual(['mcp-pins.json']);
    }
    expect(serversIn(path)).toEqual('a1 a2 a3 b1 b2 b3 c1 c2 c3 d1 d2 d3 e1 e2 e3 f1 f2 f3'.split(' '));
  });

  test.each(ways)('a process that finds a stale lock too late removes no fresh one%s', async (_, ways) => {
    const path = join(temporaryFolder(), 'mcp-pins.json');
    const lock = `${path}.lock`;
    const late = await startPinning(path, [...ways, 'paused']);
    leaveStaleLock(path);
    late.tell('late');
    expect(await late.answer()).toBe('paused');
    rmSync(lock); // another process was faster, and holds its own now
    writeFileSync(lock, 'another process');
    late.tell('go on');
    await sleep(300);
    // For a moment it has another name.
    await eventually(() => expect(readFileSync(lock, 'utf8')).toBe('another process'));
    expect(serversIn(path)).toEqual([]);
    rmSync(lock);
    expect(await late.answer()).toBe('done');
    expect(serversIn(path)).toEqual(['late']);
  });

  test('a process that was stopped and lost its lock does not write, nor remove another', async () => {
    const path = join(temporaryFolder(), 'mcp-pins.json');
    const lock = `${path}.lock`;
    const store = new PinStore(path);
    let turns = 0;
    const changed = store.change((pins) => {
      turns += 1;
      if (turns === 1) {
        rmSync(lock);
        writeFileSync(lock, 'another process');
      }
      return compare(pins, 'stopped', [TOOL], new Date()).pins;
    });
    await eventually(() => expect(turns).toBe(1));
    await sleep(100);
    expect({ lock: readFileSync(lock, 'utf8'), pins: serversIn(path) }).toEqual({ lock: 'another process', pins: [] });
    rmSync(lock);
    await changed;
    expect({ turns, pins: serversIn(path), files: readdirSync(join(path, '..')) }).toEqual({
      turns: 2,
      pins: ['stopped'],
      files: ['mcp-pins.json'],
    });
  });
});
