/** `svc` as process 1, which it is in a container: the kernel gives such a process no default for a signal. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SVC } from '../support/cli.ts';

const AS_FIRST = ['--pid', '--fork', '--kill-child', process.execPath] as const;
const canBeFirst = spawnSync('unshare', [...AS_FIRST, '--version']).status === 0;

describe('first process', () => {
  test.runIf(canBeFirst)('SIGTERM ends a waiting command, also as process 1', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const outer = spawn('unshare', [...AS_FIRST, SVC, 'ops', 'ls', '--api-url', url, '--api-key', 'any'], {
      stdio: 'ignore',
    });
    onTestFinished(() => void outer.kill('SIGKILL'));
    const ended = once(outer, 'exit');
    await once(silent, 'connection');
    process.kill(Number(readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').trim()), 'SIGTERM');
    expect(await ended).toEqual([143, null]);
  });
});
