/**
 * Everything at once that clients do to hold a server's memory and time: connections that are idle or send their
 * requests a byte at a time, streams that are reset as soon as they are opened, dashboards that do not read. Honest
 * agents go on beside them.
 */
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { registerLoadAgent, startLoad } from '../support/load.ts';
import { mostFiles, residentMib } from '../support/memory.ts';
import { head, openSocket } from '../support/raw-http.ts';
import { startSoak } from '../support/soak.ts';

const MINUTES = 30;
const IDLE = 20_000;
const SLOW = 500;
const DASHBOARDS = 50;
const LANES = 4;
/** Left to the test for its other files and connections, where the system allows fewer than all. */
const SPARE_FILES = 2_000;
/** Growth between the first and the last quarter that counts as none. */
const MOST_GROWTH = 1.25;

/** How many are open now: a system may allow fewer than were asked for. */
type Held = { count(): number; end(): void };

/** Opened again whenever the gateway closes one. */
function holdOpen(gateway: TestGateway, count: number, onOpen: (socket: Socket) => void): Held {
  const sockets = new Set<Socket>();
  const connected = new Set<Socket>();
  let isOver = false;
  const open = (): void => {
    if (isOver) return;
    const socket = openSocket(gateway);
    sockets.add(socket);
    socket.on('error', () => undefined); // closed by the gateway, as it should be
    socket.on('connect', () => {
      connected.add(socket);
      onOpen(socket);
    });
    socket.on('close', () => {
      sockets.delete(socket);
      connected.delete(socket);
      setTimeout(open, 100);
    });
    socket.resume();
  };
  // A few at a time: more than the queue of the listener holds would only wait in the kernel.
  const more = setInterval(() => {
    for (let left = 100; left > 0 && sockets.size < count; left -= 1) open();
    if (sockets.size >= count) clearInterval(more);
  }, 20);
  return {
    count: () => connected.size,
    end: () => {
      isOver = true;
      clearInterval(more);
      for (const socket of sockets) socket.destroy();
    },
  };
}

const dripping = (socket: Socket): void => {
  const bytes = `${head('POST /api/v1/ops HTTP/1.1', { 'Content-Length': '10000' })}{`;
  let at = 0;
  const timer = setInterval(() => {
    if (!socket.writable || at >= bytes.length) return clearInterval(timer);
    socket.write(bytes[at]!);
    at += 1;
  }, 100);
  socket.on('close', () => clearInterval(timer));
};

/** Streams that are opened and reset at once, on connections that the gateway closes for it. */
function resetRapidly(gateway: TestGateway): () => number {
  let resets = 0;
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) {
      const session = connectHttp2(`http://${gateway.grpc}`);
      session.on('error', () => undefined);
      while (!isOver && !session.closed && !session.destroyed) {
        for (let burst = 0; burst < 50 && !session.closed && !session.destroyed; burst += 1) {
          const call = session.request({ ':method': 'POST', ':path': '/x/y', 'content-type': 'application/grpc' });
          call.on('error', () => undefined);
          call.close(8);
          resets += 1;
        }
        await sleep(20);
      }
      session.destroy();
      await sleep(50);
    }
  };
  void run();
  return () => {
    isOver = true;
    return resets;
  };
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
    const gateway = await startTestGateway({ env: { SVC_BODY_TIMEOUT_SECS: '5' } });
    try {
      await registerLoadAgent(gateway);
      const load = startLoad(gateway, 'honest', LANES, Number.POSITIVE_INFINITY);
      const besideMs = Math.min(10_000, durationMs / 4);
      await sleep(besideMs);
      const aloneCount = load.answered.length;
      const [idling, slow] = [holdOpen(gateway, idle, () => undefined), holdOpen(gateway, SLOW, dripping)];
      const closeDashboards = await openDashboards(gateway, DASHBOARDS);
      const resets = resetRapidly(gateway);
      const samples: number[] = [];
      const untilMs = performance.now() + durationMs;
      while (performance.now() < untilMs) {
        await sleep(durationMs / 40);
        samples.push(residentMib(gateway.process.pid));
      }
      const open = { idle: idling.count(), slow: slow.count() };
      for (const end of [idling.end, slow.end, closeDashboards]) end();
      const resetCount = resets();
      const during = load.answered.length - aloneCount;
      await sleep(1_000);
      const afterFrom = load.answered.length;
      await sleep(besideMs);
      const after = load.answered.length - afterFrom;
      await load.stop();
      const failed = load.answered.filter(({ decision }) => decision !== 'DECISION_ALLOW').length + load.failed.length;
      const quarter = Math.ceil(samples.length / 4);
      const [first, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)].map((part) =>
        Math.max(...part),
      );
      expect(failed).toBe(0);
      expect(last).toBeLessThan(first! * MOST_GROWTH);
      expect(gateway.output.stderr).not.toMatch(/"level":"(?:error|fatal)"/);
      soak.done({
        'idle connections': open.idle,
        'connections that send a byte at a time': open.slow,
        'dashboards that read nothing': DASHBOARDS,
        'streams reset at once': resetCount,
        'checks of honest agents meanwhile': during,
        'checks that failed': failed,
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
