/**
 * Everything at once that clients do to hold a server's memory and time: connections that are idle or send their
 * requests a byte at a time, streams that are reset as soon as they are opened, messages of millions of empty fields,
 * dashboards that do not read. Honest agents go on beside them.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { registerLoadAgent, startLoad } from '../support/load.ts';
import { mostFiles, residentMib } from '../support/memory.ts';
import { startNewcomers } from '../support/newcomers.ts';
import { endIfOrphaned } from '../support/orphans.ts';
import { startSoak } from '../support/soak.ts';

const CLIENTS = fileURLToPath(new URL('../support/hostile-clients.mjs', import.meta.url));

const MINUTES = 30;
const IDLE = 20_000;
const SLOW = 500;
/** The part of the idle connections over gRPC: more than the gateway has places for. */
const GRPC_PART = 1 / 2;
const PLACES_FOR = 7 / 8;
const DASHBOARDS = 50;
const LANES = 4;
/** Left to the test for its other files and connections, where the system allows fewer than all. */
const SPARE_FILES = 2_000;
/** Growth between the first and the last quarter that counts as none. */
const MOST_GROWTH = 1.25;

/** As test/support/hostile-clients.mjs prints it. */
type Doings = {
  readonly idle: number;
  readonly slow: number;
  readonly idleGrpc: number;
  readonly resets: number;
  readonly floods: number;
};

/** In a process of their own: beside thousands of connections the time of the honest ones could not be measured. */
function startHostile(gateway: TestGateway, counts: readonly number[]): { now: Doings; end(): void } {
  const ports = [new URL(gateway.url).port, gateway.grpc.split(':').at(-1)!];
  const child = spawn(process.execPath, [CLIENTS, ...ports, ...counts.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endIfOrphaned(child);
  const hostile = {
    now: { idle: 0, slow: 0, idleGrpc: 0, resets: 0, floods: 0 },
    end: () => void child.kill('SIGKILL'),
  };
  createInterface(child.stdout).on('line', (line) => {
    hostile.now = JSON.parse(line) as Doings;
  });
  return hostile;
}

async function openDashboards(gateway: TestGateway, count: number): Promise<() => void> {
  const sockets: WebSocket[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/v1/stream?snapshot=true`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    socket.on('error', () => undefined); // cut off for reading nothing
    socket.on('open', () => socket.pause());
    sockets.push(socket);
  }
  await sleep(500);
  return () => {
    for (const socket of sockets) socket.terminate();
  };
}

describe('hostile clients', () => {
  test('take neither memory nor time from honest agents', async () => {
    const soak = startSoak('hostile-clients');
    const durationMs = soak.of(MINUTES * 60) * 1_000;
    const idle = Math.min(IDLE, soak.of(IDLE) * 10, mostFiles() - SPARE_FILES);
    const idleGrpc = Math.ceil(idle * GRPC_PART);
    const places = Math.ceil(idleGrpc * PLACES_FOR);
    const gateway = await startTestGateway({
      env: { SVC_BODY_TIMEOUT_SECS: '5', SVC_MAX_GRPC_CONNECTIONS: String(places) },
    });
    try {
      await registerLoadAgent(gateway);
      const load = startLoad(gateway, 'honest', LANES, Number.POSITIVE_INFINITY);
      const newcomers = startNewcomers(gateway);
      const besideMs = Math.min(10_000, durationMs / 4);
      await sleep(besideMs);
      const aloneCount = load.answered.length;
      const fromMs = performance.now();
      const hostile = startHostile(gateway, [idle - idleGrpc, SLOW, idleGrpc]);
      const closeDashboards = await openDashboards(gateway, DASHBOARDS);
      const samples: number[] = [];
      const most = { idle: 0, idleGrpc: 0, slow: 0 };
      const untilMs = performance.now() + durationMs;
      while (performance.now() < untilMs) {
        await sleep(durationMs / 40);
        samples.push(residentMib(gateway.process.pid));
        for (const kind of ['idle', 'idleGrpc', 'slow'] as const) most[kind] = Math.max(most[kind], hostile.now[kind]);
      }
      const { resets, floods } = hostile.now;
      for (const end of [hostile.end, closeDashboards]) end();
      const during = load.answered.length - aloneCount;
      await sleep(1_000);
      const afterFrom = load.answered.length;
      await sleep(besideMs);
      const after = load.answered.length - afterFrom;
      await Promise.all([load.stop(), newcomers.stop()]);
      const denied = load.answered.filter(({ decision }) => decision !== 'DECISION_ALLOW');
      const failures = [...denied.map((answer) => JSON.stringify(answer)), ...load.failures, ...newcomers.failures];
      if (failures.length > 0) console.error(failures, `hostile clients came at ${Math.round(fromMs)} ms`);
      const quarter = Math.ceil(samples.length / 4);
      const [first, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)].map((part) =>
        Math.max(...part),
      );
      expect(failures).toEqual([]);
      expect(last).toBeLessThan(first! * MOST_GROWTH);
      expect(gateway.output.stderr).not.toMatch(/"level":"(?:error|fatal)"/);
      soak.done({
        'idle connections over HTTP, most at once': most.idle,
        'idle connections over gRPC, most at once': `${most.idleGrpc}, with ${places} places for all`,
        'connections that send a byte at a time, most at once': most.slow,
        'dashboards that read nothing': DASHBOARDS,
        'streams reset at once': resets,
        'messages of nothing but fields or brackets': floods,
        'checks of honest agents meanwhile': during,
        'checks on a connection of their own, over HTTP / gRPC': `${newcomers.answered.http} / ${newcomers.answered.grpc}`,
        'the longest of these took': `${Math.round(newcomers.longestMs)} ms`,
        'checks that failed': failures.length,
        'checks a second before / meanwhile / after': [
          (aloneCount * 1_000) / besideMs,
          (during * 1_000) / durationMs,
          (after * 1_000) / besideMs,
        ]
          .map(Math.round)
          .join(' / '),
        'memory in the second and the last quarter': `${Math.round(first!)} / ${Math.round(last!)} MiB`,
      });
    } finally {
      await gateway.stop('SIGKILL');
    }
  });
});
