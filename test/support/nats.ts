/** A real NATS server for a test: Debian's package nats-server, or any other of 2.9 or later. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { readGreeting } from '../../src/bus/nats-greeting.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { endIfOrphaned } from './orphans.ts';

/** NATS_SERVER_PATH names one in an unusual place. Undefined when there is none. */
export const NATS_SERVER: string | undefined = [
  process.env.NATS_SERVER_PATH ?? '',
  'nats-server',
  '/usr/sbin/nats-server',
].find(runs);
if (NATS_SERVER === undefined)
  console.log('NATS is not tried: there is no nats-server here; install it, or name it with NATS_SERVER_PATH');

function runs(command: string): boolean {
  if (command === '') return false;
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export type TestNats = {
  readonly port: number;
  readonly url: string;
  /** By SIGKILL. */
  kill(): Promise<void>;
  /** On the same port. */
  restart(): Promise<void>;
};

/** Ends with the test, or with the file where `atEnd` is its `afterAll`. `config`: in the language of the server. */
export async function startNats(config = '', atEnd: (end: () => void) => void = onTestFinished): Promise<TestNats> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'svc-nats-'));
  const file = join(folder, 'nats.conf');
  writeFileSync(file, config);
  let server: ChildProcess | undefined;
  const restart = async (): Promise<void> => {
    server = spawn(NATS_SERVER!, ['-c', file, '-a', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
    endIfOrphaned(server);
    await eventually(() => readGreeting({ host: '127.0.0.1', port }, AbortSignal.timeout(10_000)));
  };
  atEnd(() => {
    server?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  await restart();
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    restart,
    kill: async () => {
      const ended = new Promise<void>((resolve) => void server!.once('exit', () => resolve()));
      server!.kill('SIGKILL');
      await ended;
    },
  };
}
