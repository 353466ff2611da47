/**
 * Measures the cost of watching: many dashboards on one gateway while operations change fast, and whether every
 * dashboard shows the right states in the end. Run after a build: node dist/bench/stream.js [dashboards] [transitions
 * per second] [seconds]
 *
 * Dashboards are bare sockets in processes of their own that read as fast as they can; one more is a full client that
 * checks what it receives.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isBrief, numbers } from './lib/options.ts';
import { heading, line, median } from './lib/report.ts';
import { ADMIN_KEY, startGateway } from './lib/subject.ts';

const BATCH = 500;
/** Without a frame for this long, what is missing does not come. */
const SILENT_MS = 10_000;

if (process.send !== undefined) watch(process.argv[2]!, Number(process.argv[3]));
else {
  const [dashboards = isBrief ? 50 : 2_000, perSecond = isBrief ? 4_000 : 20_000, seconds = isBrief ? 0.5 : 3] =
    numbers;
  await main(dashboards, perSecond, seconds);
}

/** Opens dashboards and throws away what they are sent. */
function watch(url: string, count: number): void {
  const { hostname, port, host } = new URL(url);
  let bytes = 0;
  let open = 0;
  for (let at = 0; at < count; at += 1) {
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `GET /api/v1/stream HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      ),
    );
    // The head may come in several pieces.
    let head: string | undefined = '';
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (head === undefined) return;
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (!head.startsWith('HTTP/1.1 101')) throw new Error(head);
      head = undefined;
      if ((open += 1) === count) process.send?.('open');
    });
    socket.on('error', () => undefined);
  }
  process.on('message', (message) => {
    if (message === 'report') process.send?.(bytes);
  });
}

async function main(dashboards: number, perSecond: number, seconds: number): Promise<void> {
  const { url, pid, stop } = await startGateway({
    SVC_RATE_LIMIT_API: '0',
    SVC_IO_THREADS: process.env.SVC_IO_THREADS ?? '1',
  });
  const watchers = await Promise.all(
    [Math.ceil(dashboards / 2), Math.floor(dashboards / 2)]
      .filter((count) => count > 0)
      .map((count) => startWatcher(url, count)),
  );
  const witness = await openWitness(url);
  const rssBefore = rssMib(pid);
  const { checks, tookMs, mainMs, allMs, peakMib, latencies } = await load(url, pid, perSecond, seconds);
  const caughtUp = await hasCaughtUp(witness, checks);
  const bytes = await Promise.all(watchers.map(bytesSentTo));
  heading(
    `${dashboards} dashboards see ${Math.round((checks * 2 * 1000) / tookMs)} transitions a second, for ${(tookMs / 1000).toFixed(1)} s`,
  );
  line(
    'main thread, of a whole transition',
    (mainMs * 1000) / (checks * 2),
    'µs',
    `${Math.round((mainMs / tookMs) * 100)} % of a core`,
  );
  line('all threads', (allMs / tookMs) * 100, '% of a core');
  line('memory, all connected', rssBefore, 'MiB');
  line('memory, at most', peakMib, 'MiB');
  line('memory, afterwards', rssMib(pid), 'MiB');
  line(
    `a batch of ${BATCH} checks meanwhile, median`,
    median(latencies),
    'ms',
    `worst ${latencies.at(-1)!.toFixed(0)} ms`,
  );
  line('sent to dashboards', bytes.reduce((sum, count) => sum + count, 0) / 1024 / 1024, 'MiB');
  const { frames, dropped } = witness.counts();
  line(
    'frames to one full client',
    frames,
    '',
    `${dropped} dropped; ${caughtUp ? 'it has the last state of every operation' : 'IT HAS WRONG STATES'}`,
  );
  if (!caughtUp) process.exitCode = 1;
  for (const watcher of watchers) watcher.kill();
  witness.close();
  await stop();
}

/** A process of its own with so many dashboards, once all of them are open. */
function startWatcher(url: string, count: number): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const watcher = fork(fileURLToPath(import.meta.url), [url, String(count)]);
    watcher.once('message', () => resolve(watcher));
    watcher.once('exit', (code) => reject(new Error(`a process of dashboards ended with ${code}`)));
  });
}

function bytesSentTo(watcher: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    watcher.once('message', (count) => resolve(count as number));
    watcher.send('report');
  });
}

type Witness = {
  /** Every one of so many operations is known to be running, but for those whose frames were dropped. */
  isCaughtUp(operations: number): boolean;
  counts(): { readonly frames: number; readonly dropped: number };
  close(): void;
};

/** Opens a full client, which keeps the last state of every operation. */
async function openWitness(url: string): Promise<Witness> {
  const { WebSocket } = await import('ws');
  const states = new Map<string, string>();
  let frames = 0;
  let dropped = 0;
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/stream`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  await new Promise((resolve) => socket.once('open', resolve));
  socket.on('message', (data) => {
    const { event_type, payload } = JSON.parse(String(data)) as {
      event_type: string;
      payload: { op_id: string; state: string; dropped: number };
    };
    frames += 1;
    if (event_type === 'lagged') dropped += payload.dropped;
    else states.set(payload.op_id, payload.state);
  });
  return {
    isCaughtUp: (operations) =>
      states.size + dropped >= operations && [...states.values()].every((state) => state === 'running'),
    counts: () => ({ frames, dropped }),
    close: () => socket.terminate(),
  };
}

type Load = {
  readonly checks: number;
  readonly tookMs: number;
  /** Processor time of the main thread, and of all. */
  readonly mainMs: number;
  readonly allMs: number;
  readonly peakMib: number;
  /** Latencies of the batches, sorted. */
  readonly latencies: readonly number[];
};

/** Checks at a steady pace. Each makes its operation pending and then running: two transitions. */
async function load(url: string, pid: number, perSecond: number, seconds: number): Promise<Load> {
  const cpuBefore = cpuOf(pid);
  const startMs = performance.now();
  let checks = 0;
  let peakMib = rssMib(pid);
  const latencies: number[] = [];
  for (let at = 0; performance.now() - startMs < seconds * 1000; at += 1) {
    const dueMs = startMs + (at * BATCH * 2 * 1000) / perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const sentMs = performance.now();
    await checkBatch(url, at);
    latencies.push(performance.now() - sentMs);
    checks += BATCH;
    peakMib = Math.max(peakMib, rssMib(pid));
  }
  const tookMs = performance.now() - startMs;
  const cpu = cpuOf(pid);
  latencies.sort((one, other) => one - other);
  return { checks, tookMs, mainMs: cpu.main - cpuBefore.main, allMs: cpu.all - cpuBefore.all, peakMib, latencies };
}

async function checkBatch(url: string, at: number): Promise<void> {
  const requests = Array.from({ length: BATCH }, (_, of) => ({
    agent: { orgId: `org-${of % 20}`, teamId: 'team', agentId: `agent-${of}` },
    traceId: `trace-${at}-${of}`,
    spanId: 's',
    action: 'tool.call',
    resource: 'web_search',
  }));
  const response = await fetch(`${url}/svc.governance.v1.PolicyService/BatchCheckActions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify({ requests }),
  });
  const text = await response.text();
  if (response.status !== 200 || text.includes('DECISION_DENY')) throw new Error(text.slice(0, 500));
}

/** Waits as long as frames arrive: the last of thousands of dashboards that share two cores has them in a minute. */
async function hasCaughtUp(witness: Witness, operations: number): Promise<boolean> {
  let seen = -1;
  let endMs = 0;
  while (!witness.isCaughtUp(operations)) {
    const { frames } = witness.counts();
    if (frames !== seen) endMs = performance.now() + SILENT_MS;
    else if (performance.now() > endMs) return false;
    seen = frames;
    await sleep(50);
  }
  return true;
}

function rssMib(pid: number): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
}

/** Milliseconds of processor time so far: of the main thread, and of all. */
function cpuOf(pid: number): { main: number; all: number } {
  const msOf = (tid: string): number => {
    const fields = readFileSync(`/proc/${pid}/task/${tid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  };
  const tids = readdirSync(`/proc/${pid}/task`);
  return { main: msOf(String(pid)), all: tids.reduce((sum, tid) => sum + msOf(tid), 0) };
}
