/** The leftovers of a benchmark that did not run to its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';

type Bench = {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly output: { stdout: string; stderr: string };
  readonly status: Promise<unknown>;
};

function start(name: string, ...words: string[]): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  const child = spawn(process.execPath, [join(PACKAGE_ROOT, 'dist', 'bench', `${name}.js`), ...words], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (bytes: Buffer) => {
    output.stdout += bytes.toString();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    output.stderr += bytes.toString();
  });
  return { child, folder, output, status: once(child, 'close').then(([status]) => status) };
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('ending', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a benchmark ended by %s cleans up and prints no figures', async (signal, expected) => {
    const { child, folder, output, status } = start('connect');
    // A bare server, the gateway, and the client.
    await eventually(() => expect(childrenOf(child.pid!).length).toBe(3));
    const children = childrenOf(child.pid!);
    child.kill(signal);
    expect(await status).toBe(expected);
    expect(readdirSync(folder)).toEqual([]);
    await eventually(() => expect(children.filter(isAlive)).toEqual([]));
    expect(output.stdout).not.toContain('checks/s');
    expect(output.stderr).toBe('');
  });

  test('a benchmark whose gateway dies fails with the reason and leaves no files', async () => {
    const { child, folder, output, status } = start('steady');
    const gateway = await eventually(() => {
      const found = childrenOf(child.pid!).find((pid) =>
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('serve'),
      );
      expect(found).toBeDefined();
      return found!;
    });
    process.kill(gateway, 'SIGKILL');
    expect(await status).toBe(1);
    expect(output.stderr).toMatch(/ended with null|checks failed/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a reader of standard output that stops early is no error', async () => {
    const { child, folder, output, status } = start('policy-decide', '--brief');
    child.stdout?.once('data', () => child.stdout?.destroy());
    expect(await status).toBe(0);
    expect(output.stderr).toBe('');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('an unknown benchmark is refused with the known ones, and measures nothing', async () => {
    const { output, status } = start('steady', '--breif');
    expect(await status).toBe(2);
    expect(output.stdout).toBe('');
    expect(output.stderr).toMatch(
      /^this benchmark knows no "--breif"\n\nusage: node dist\/bench\/<name>\.js \[--brief \| --write\]\n/,
    );
  });

  test.each([
    ['governor', ['5'], '5'],
    ['audit-query', ['500', '7'], '7'],
    ['stream', ['10', '100', '1', '8'], '8'],
    ['stream', ['0'], '0'],
  ] as const)('%s %j is refused: it would be ignored or waited for in vain', async (bench, words, refused) => {
    const { output, status } = start(bench, ...words);
    expect(await status).toBe(2);
    expect(output.stdout).toBe('');
    expect(output.stderr).toContain(`this benchmark knows no "${refused}"\n`);
  });

  test('opens an odd number of dashboards, and one alone', async () => {
    for (const dashboards of ['1', '3']) {
      const { output, status } = start('stream', '--brief', dashboards);
      expect(await status).toBe(0);
      expect(output.stdout).toContain(`\n${dashboards} dashboards see `);
    }
  });

  test('a benchmark prints its usage', async () => {
    const { output, status } = start('steady', '--help');
    expect(await status).toBe(0);
    expect(output.stdout).toMatch(/^usage: node dist\/bench\/<name>\.js \[--brief \| --write\]\n/);
    expect(output.stderr).toBe('');
  });
});
