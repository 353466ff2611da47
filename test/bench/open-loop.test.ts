import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadHere, type OpenLoad } from '../../bench/lib/open-loop.ts';

const ALLOWED = '{"decision":"DECISION_ALLOW"}';

/** Answers each request as `answer` does, with its body. */
async function serverOf(answer: (body: string, reply: (status: number, text: string) => void) => void) {
  const server: Server = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => answer(body, (status, text) => void res.writeHead(status).end(text)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const load = (over: Partial<OpenLoad> = {}): OpenLoad => ({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/check`,
    body: '<id> <agent>',
    rate: 400,
    seconds: 0.5,
    connections: 4,
    ...over,
  });
  return load;
}

describe('the open-loop client', () => {
  test('asks about a new operation each time, of all agents in turn', async () => {
    const bodies: string[] = [];
    const load = await serverOf((body, reply) => {
      bodies.push(body);
      reply(200, ALLOWED);
    });
    const { answered } = await loadHere(load({ agents: 3 }));
    expect(answered).toBe(bodies.length);
    expect(answered).toBeGreaterThan(100);
    expect(new Set(bodies.map((body) => body.split(' ')[0])).size).toBe(answered);
    const shares = ['0', '1', '2'].map((agent) => bodies.filter((body) => body.endsWith(` ${agent}`)).length);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    expect(shares.reduce((sum, share) => sum + share)).toBe(answered);
  });

  test('counts the time of checks that could not be sent because others were stuck', async () => {
    const startedMs = performance.now();
    const load = await serverOf((_, reply) => {
      const stuckMs = Math.max(0, startedMs + 1_000 - performance.now());
      setTimeout(() => reply(200, ALLOWED), stuckMs);
    });
    // For a second nothing is answered. Only four of some 200 checks are sent by then, and all of them have waited.
    const { answered, p50 } = await loadHere(load());
    expect(answered).toBeGreaterThan(100);
    expect(p50).toBeGreaterThan(400);
  });

  test('fails where a check is refused', async () => {
    const load = await serverOf((_, reply) => reply(503, '{"code":"unavailable"}'));
    await expect(loadHere(load())).rejects.toThrow('a check was answered: HTTP/1.1 503');
  });
});
