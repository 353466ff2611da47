/** `npm run demo:cluster` beside a gateway that already runs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { endIfOrphaned } from '../support/orphans.ts';

describe('npm run demo:cluster', () => {
  const taken: Server[] = [];
  let demo: ChildProcess | undefined;
  afterEach(async () => {
    for (const server of taken.splice(0)) server.close();
    if (demo?.exitCode === null) {
      const ended = new Promise((resolve) => demo?.once('exit', resolve));
      demo.kill('SIGTERM');
      await ended;
    }
  });

  /** True also where somebody else has the port. */
  const take = (port: number): Promise<void> =>
    new Promise((resolve) => {
      const server = createServer().once('error', () => resolve());
      server.listen(port, '127.0.0.1', () => {
        taken.push(server);
        resolve();
      });
    });
  const start = (env: NodeJS.ProcessEnv): { readonly output: () => string; readonly ended: Promise<number | null> } => {
    const child = spawn(process.execPath, [join(PACKAGE_ROOT, 'scripts', 'demo-cluster.mjs')], {
      env: { ...process.env, DEMO_PORT: undefined, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endIfOrphaned(child);
    demo = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => {
        output += piece.toString();
      });
    return { output: () => output, ended: new Promise((resolve) => child.once('exit', resolve)) };
  };

  test('takes other ports where 8080 is taken', { timeout: 120_000 }, async () => {
    await take(8080);
    const { output } = start({});
    await expect.poll(output, { timeout: 100_000 }).toContain('The cluster is ready');
    const port = /ready at http:\/\/127\.0\.0\.1:(\d+), the balancer/.exec(output())?.[1];
    expect(port).not.toBe('8080');
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  });

  test('says before anything starts that a chosen port is taken', async () => {
    await take(8982);
    const { output, ended } = start({ DEMO_PORT: '8980' });
    expect(await ended).toBe(1);
    expect(output()).toBe('port 8982 is taken; choose another DEMO_PORT, which also needs the 3 ports after it\n');
  });
});
