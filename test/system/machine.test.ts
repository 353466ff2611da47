/** How many threads the gateway starts where nobody says so. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mostOpenFiles, usableCores } from '../../src/system/machine.ts';
import { SVC } from '../support/cli.ts';

const v1 = (quota: string) => ({ 'cpu/cpu.cfs_quota_us': `${quota}\n`, 'cpu/cpu.cfs_period_us': '100000\n' });

describe('cores', () => {
  test.for([
    ['no limit', { 'cpu.max': 'max 100000\n' }, 32],
    ['a limit of two cores', { 'cpu.max': '200000 100000\n' }, 2],
    ['a limit of two and a half', { 'cpu.max': '250000 100000\n' }, 2],
    ['a limit of half a core', { 'cpu.max': '50000 100000\n' }, 1],
    ['a limit beyond what the machine has', { 'cpu.max': '6400000 100000\n' }, 32],
    ['version 1: no limit', v1('-1'), 32],
    ['version 1: a limit of two cores', v1('200000'), 2],
    ['no control groups', {}, 32],
  ] as const)("a container's CPU limit counts as its cores: %s, on a machine with 32", ([, files, cores]) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-cores-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    expect(usableCores(32, folder)).toBe(cores);
  });

  test('a machine with 96 cores needs no setting', () => {
    const with96 =
      "import os from 'node:os'; import { syncBuiltinESMExports } from 'node:module'; os.availableParallelism = () => 96; syncBuiltinESMExports();";
    const env = { PATH: process.env.PATH ?? '', SVC_LOG_LEVEL: 'loud' };
    const { stderr } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(with96)}`, SVC, 'serve'],
      { env, encoding: 'utf8', timeout: 60_000 },
    );
    expect(stderr).toMatch(/^svc-gateway cannot start:\n {2}SVC_LOG_LEVEL must be [^\n]*\n$/);
  });
});

describe('files', () => {
  test.each([
    ['Max open files            20000                20000                files     \n', 20_000],
    ['Max open files            unlimited            unlimited            files     \n', Infinity],
    ['', Infinity],
  ])('the limit of open files is read where the system tells it: %s', (line, most) => {
    expect(mostOpenFiles(`Limit                     Soft Limit           Hard Limit           Units\n${line}`)).toBe(
      most,
    );
  });
});
