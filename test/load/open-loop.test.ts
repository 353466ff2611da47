import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpLane } from '../../src/load/http-lane.ts';
import { loadOpenly, type OpenLoop } from '../../src/load/open-loop.ts';

const ALLOWED = '{"decision":"DECISION_ALLOW"}';

/** A load on a server that answers each request as `answer` does, with its body. */
async function loadOn(answer: (body: string, res: ServerResponse) => void, { connections = 4 } = {}) {
  const server: Server = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => answer(body, res));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/check`);
  const lanes = Array.from({ length: connections }, () => new HttpLane({ url, bodyOf: String }));
  onTestFinished(() => {
    for (const lane of lanes) lane.close();
    server.closeAllConnections();
    server.close();
  });
  return (over: Partial<OpenLoop> = {}) => loadOpenly({ lanes, rate: 400, seconds: 0.5, ...over });
}

describe('the open-loop client', () => {
  test('sends every check that is due once, over all connections', async () => {
    const bodies: string[] = [];
    const ports = new Set<number | undefined>();
    const load = await loadOn((body, res) => {
      bodies.push(body);
      ports.add(res.socket?.remotePort);
      res.end(ALLOWED);
    });
    const { due, answered, decisions, errors } = await load();
    expect(answered).toBeGreaterThan(100);
    expect({ due, decisions, errors }).toEqual({
      due: answered,
      decisions: { allow: answered, deny: 0, pending: 0 },
      errors: 0,
    });
    expect(bodies.sort((one, other) => Number(one) - Number(other))).toEqual(
      Array.from({ length: answered }, (_, nth) => String(nth)),
    );
    expect(ports.size).toBe(4);
  });

  test('counts the time of checks that could not be sent because others were stuck', async () => {
    const startedMs = performance.now();
    const load = await loadOn((_, res) => {
      setTimeout(() => res.end(ALLOWED), Math.max(0, startedMs + 1_000 - performance.now()));
    });
    // For a second nothing is answered. Only four of some 200 checks are sent by then, and all of them have waited.
    const { answered, unsent, waits } = await load();
    expect(answered).toBeGreaterThan(100);
    expect(unsent).toBeGreaterThan(100);
    expect(waits.p50).toBeGreaterThan(400);
  });

  test('shows a short stall of the server in the tail', async () => {
    const startedMs = performance.now();
    const isStalled = () => Math.abs(performance.now() - startedMs - 500) < 150;
    const load = await loadOn((_, res) => {
      if (isStalled()) setTimeout(() => res.end(ALLOWED), startedMs + 650 - performance.now());
      else res.end(ALLOWED);
    });
    const { waits } = await load({ seconds: 1.5 });
    // A fifth of the checks came due in the stall; a client that waits for answers would have sent four.
    expect(waits.p90).toBeGreaterThan(50);
    expect(waits.p99).toBeGreaterThan(200);
  });

  test('counts refusals and cut connections as errors, with their reasons, and goes on', async () => {
    const load = await loadOn((body, res) => {
      if (Number(body) % 4 === 0) res.writeHead(503).end('{"code":"unavailable","message":"too busy"}');
      else if (Number(body) % 4 === 1) res.end('{"decision":"DECISION_DENY","reason":"no rule"}');
      else if (Number(body) % 4 === 2) res.end('{"decision":"DECISION_DENY","cause":"DECISION_CAUSE_UNRECORDED"}');
      else res.end(ALLOWED);
    });
    const { due, errors, decisions, reasons } = await load();
    expect(errors + decisions.allow + decisions.deny).toBe(due);
    expect(decisions.deny).toBeGreaterThan(20);
    expect(reasons.map(({ kind, reason }) => `${kind} ${reason}`).sort()).toEqual([
      'deny no rule',
      'error ',
      'error 503 too busy',
    ]);
  });

  test('a gateway that goes away is an error of each check, until it is back', async () => {
    let isAway = false;
    setTimeout(() => {
      isAway = true;
    }, 200);
    setTimeout(() => {
      isAway = false;
    }, 400);
    const load = await loadOn((_, res) => {
      if (isAway) res.destroy();
      else res.end(ALLOWED);
    });
    const { due, decisions, errors, reasons } = await load({ seconds: 0.8 });
    expect(decisions.allow + errors).toBe(due);
    expect(errors).toBeGreaterThan(10);
    expect(decisions.allow).toBeGreaterThan(100);
    expect(reasons.every(({ kind }) => kind === 'error')).toBe(true);
  });

  test('answers in chunks, and those that end their connection, are read to their end', async () => {
    const load = await loadOn((body, res) => {
      if (Number(body) % 2 === 0) res.setHeader('connection', 'close');
      res.write(ALLOWED.slice(0, 10));
      res.end(ALLOWED.slice(10));
    });
    const { due, decisions } = await load({ rate: 100 });
    expect(due).toBeGreaterThan(10);
    expect(decisions.allow).toBe(due);
  });

  test('what is never answered is an error that has waited', async () => {
    const ended = new AbortController();
    const load = await loadOn(() => undefined);
    setTimeout(() => ended.abort(), 200);
    const { due, answered, errors, reasons, waits } = await load({ seconds: 60, signal: ended.signal });
    expect(due).toBeGreaterThan(20);
    expect({ answered, errors, reasons }).toEqual({
      answered: 0,
      errors: due,
      reasons: [{ kind: 'error', reason: 'no answer', count: due }],
    });
    expect(waits.longest).toBeGreaterThan(1_000);
  });
});
