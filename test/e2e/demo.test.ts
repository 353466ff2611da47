import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { endIfOrphaned } from '../support/orphans.ts';

describe('the demo', () => {
  test('runs a fleet of 200 agents where it is told to, and stops cleanly', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-demo-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const address = `127.0.0.1:${await freePort()}`;
    const demo = spawn(process.execPath, [join(PACKAGE_ROOT, 'scripts', 'demo.mjs')], {
      env: {
        ...{ PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder },
        ...{ SVC_HTTP_ADDR: address, SVC_DATA_DIR: join(folder, 'data') },
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    endIfOrphaned(demo);
    const ended = new Promise((resolve) => demo.once('exit', resolve));
    onTestFinished(() => void demo.kill('SIGTERM'));
    let said = '';
    demo.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually(() => expect(said).toContain('Key'), 90_000);
    const [, url, key] = /URL +(\S+)\n +Key +(\S+)\n/.exec(said) ?? [];
    expect(url).toBe(`http://${address}`);
    const read = async (path: string): Promise<any> =>
      (await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })).json();
    expect(await read('/api/v1/topology/overview?per_page=1')).toMatchObject({ org_count: 3, agent_count: 200 });
    expect((await read('/api/v1/auth/methods')).methods).toEqual(['api_key', 'password']);
    expect((await read('/api/v1/logs?event_type=A2AImpersonationAttempted')).entries).toHaveLength(1);
    expect((await read('/api/v1/approvals?state=pending')).approvals.length).toBeGreaterThan(0);
    demo.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(existsSync(join(folder, 'data'))).toBe(true); // it was given, so it is kept
  });
});
