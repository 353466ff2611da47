/**
 * Far more requests than the gateway can answer, for a while: what it admits is answered soon, everything else is
 * refused at once, it takes no more memory for it, and is as fast as before once it is over.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { Messages } from '../../src/doors/proto/messages.ts';
import { messageShape } from '../../src/doors/proto/schema.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { framed } from '../support/grpc-frames.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { residentMib } from '../support/memory.ts';
import { endIfOrphaned } from '../support/orphans.ts';
import { startSoak } from '../support/soak.ts';

const SECONDS = 60;
const TIMES = 5;
/** How much of its speed before the overload counts as the same. */
const FULL = 0.9;
/** Growth between the first and the last quarter that counts as none. */
const MOST_GROWTH = 1.25;
/** How many checks may be waiting at once; full speed takes the fewest that come near the best rate. */
const LEVELS = [16, 32, 64, 128];
const NEAR = 0.9;
/** From a change of the load until it is measured. */
const SETTLE_MS = 500;
/** Threads that serve HTTP and gRPC each have the limit: one, so that it says how many are admitted in all. */
const DOORS = { SVC_IO_THREADS: availableParallelism() > 2 ? '1' : '0' };

const CLIENT = fileURLToPath(new URL('../support/overload-client.mjs', import.meta.url));
/** A running operation is checked over and over: a registry that grows, as it should, would hide what else grows. */
const CHECK = {
  agent: LOAD_AGENT,
  credentialToken: LOAD_TOKEN,
  spanId: 's',
  action: 'tool.call',
  resource: 'web_search',
};

/** A client's counts since it was last asked. */
type Tally = {
  readonly ms: number;
  readonly allowed: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly failed: number;
  /** Why the first ones failed. */
  readonly reasons: readonly string[];
  /** How many took how many tenths of a millisecond. */
  readonly waits: readonly (readonly [number, number])[];
};

/** Half of the checks come over Connect, half over gRPC, from a process each. */
class Clients {
  readonly #children: readonly ChildProcess[];

  constructor(gateway: TestGateway) {
    const { encode } = binaryCodec('CheckActionRequest');
    const request = { ...emptyMessage(messageShape('CheckActionRequest')), ...CHECK, traceId: 'over-grpc' };
    const clientOf = (protocol: 'connect' | 'grpc', address: string, message: Buffer): ChildProcess => {
      const child = fork(CLIENT, [protocol, ...address.split(':'), message.toString('base64')], { execArgv: [] });
      endIfOrphaned(child);
      return child;
    };
    this.#children = [
      clientOf(
        'connect',
        new URL(gateway.url).host,
        Buffer.from(JSON.stringify({ ...CHECK, traceId: 'over-connect' })),
      ),
      clientOf('grpc', gateway.grpc, framed(encode(request as Messages['CheckActionRequest']))),
    ];
  }

  get pids(): readonly (number | undefined)[] {
    return this.#children.map(({ pid }) => pid);
  }

  /** Keeps so many checks waiting at the gateway. */
  keep(waiting: number): void {
    for (const child of this.#children) child.send({ lanes: waiting / this.#children.length });
  }

  take(): Promise<readonly Tally[]> {
    return Promise.all(
      this.#children.map(
        (child) =>
          new Promise<Tally>((resolve, reject) => {
            const onExit = (): void => reject(new Error('a client has ended'));
            child.once('exit', onExit);
            child.once('message', (tally) => {
              child.off('exit', onExit);
              resolve(tally as Tally);
            });
            child.send('take');
          }),
      ),
    );
  }

  /** Without what came before. */
  async measure(ms: number): Promise<readonly Tally[]> {
    await this.take();
    await sleep(ms);
    return this.take();
  }

  end(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}

const allowedPerSecond = (tallies: readonly Tally[]): number =>
  tallies.reduce((sum, { allowed, ms }) => sum + (allowed * 1_000) / ms, 0);

/** Returns a percentile of the waits of admitted requests. */
function waitMs(tallies: readonly Tally[], percent: number): number {
  const waits = tallies.flatMap((tally) => tally.waits).sort(([a], [b]) => a - b);
  const rank = (waits.reduce((sum, [, times]) => sum + times, 0) * percent) / 100;
  let below = 0;
  for (const [tenths, times] of waits) {
    below += times;
    if (below >= rank) return (tenths + 1) / 10;
  }
  return Number.NaN;
}

const refusedWith = (tallies: readonly Tally[], error: string): number =>
  tallies.reduce((sum, { refused }) => sum + (refused[error] ?? 0), 0);

/** Seconds of a processor that a process has taken so far; Linux only. */
function processorSecs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** How many admitted checks the gateway has answered within so many seconds, by its own clock. */
async function answeredWithin(gateway: TestGateway): Promise<ReadonlyMap<number, number>> {
  const { body } = await gateway.call('GET', '/metrics');
  const rows = String(body).matchAll(/^svc_check_duration_seconds_bucket\{[^}]*le="([^"]+)"\} (\d+)/gm);
  return new Map(
    [...rows].map(([, le, count]) => [le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), Number(count)]),
  );
}

/** The least of the gateway's bounds that 99 % of the checks between these two have kept. */
function boundMs(from: ReadonlyMap<number, number>, to: ReadonlyMap<number, number>): number {
  const added = [...to].map(([secs, count]) => [secs, count - (from.get(secs) ?? 0)] as const);
  const all = added.at(-1)?.[1] ?? 0;
  return (added.find(([, count]) => count >= 0.99 * all)?.[0] ?? Number.NaN) * 1_000;
}

async function started(env: Readonly<Record<string, string>>) {
  const gateway = await startTestGateway({ env: { ...DOORS, ...env } });
  const clients = new Clients(gateway);
  onTestFinished(async () => {
    clients.end();
    await gateway.stop('SIGKILL');
  });
  await registerLoadAgent(gateway);
  return { gateway, clients };
}

/** How many checks waiting at once the full speed of the gateway takes. */
async function saturation(levelMs: number): Promise<number> {
  const { gateway, clients } = await started({});
  clients.keep(LEVELS[0]!);
  await sleep(2 * SETTLE_MS);
  const rates: number[] = [];
  for (const level of LEVELS) {
    clients.keep(level);
    await sleep(SETTLE_MS);
    rates.push(allowedPerSecond(await clients.measure(levelMs)));
  }
  clients.end();
  await gateway.stop('SIGKILL');
  const best = Math.max(...rates);
  return LEVELS[rates.findIndex((rate) => rate >= NEAR * best)]!;
}

/** The memory of the gateway, while it lasts. */
async function overload(gateway: TestGateway, clients: Clients, waiting: number, ms: number) {
  await clients.take();
  clients.keep(waiting);
  const mib: number[] = [];
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {
    await sleep(ms / 40);
    mib.push(residentMib(gateway.process.pid));
  }
  return { tallies: await clients.take(), mib };
}

describe('overload', () => {
  test('is refused as such, fills no memory and leaves no trace', async () => {
    const soak = startSoak('overload');
    const overloadMs = soak.of(SECONDS) * 1_000;
    const besideMs = Math.min(5_000, Math.max(1_000, overloadMs / 5));
    const enough = await saturation(besideMs);
    const { gateway, clients } = await started({ SVC_MAX_PENDING: String(4 * enough) });
    clients.keep(enough);
    await sleep(2 * besideMs);
    const usedSecs = () => [gateway.process.pid, ...clients.pids].map(processorSecs);
    const [usedBefore, fromMs] = [usedSecs(), performance.now()];
    const before = await clients.measure(besideMs);
    const tookSecs = (performance.now() - fromMs) / 1_000;
    const cores = usedSecs().map((secs, at) => (secs - usedBefore[at]!) / tookSecs);
    const answeredBefore = await answeredWithin(gateway);
    const { tallies: during, mib } = await overload(gateway, clients, TIMES * enough, overloadMs);
    clients.keep(enough);
    await sleep(1_000);
    const answeredAfter = await answeredWithin(gateway);
    const after = await clients.measure(besideMs);
    const all = [...before, ...during, ...after];
    const quarter = Math.ceil(mib.length / 4);
    const [first, last] = [Math.max(...mib.slice(quarter, 2 * quarter)), Math.max(...mib.slice(-quarter))];
    const rates = [before, during, after].map(allowedPerSecond);
    const [connect, grpc] = [refusedWith(during, '429'), refusedWith(during, 'RESOURCE_EXHAUSTED')];
    const figures = {
      'checks waiting at once, for full speed / meanwhile': `${enough} / ${TIMES * enough}`,
      'processors taken at full speed, by the gateway / its clients': [cores[0]!, cores[1]! + cores[2]!]
        .map((count) => count.toFixed(1))
        .join(' / '),
      'checks allowed a second, before / meanwhile / 1 s after': rates
        .map((rate) => Math.round(rate).toLocaleString('en'))
        .join(' / '),
      'of those allowed, half / 99 % were answered within (goal: 20 ms)': `${waitMs(during, 50)} / ${waitMs(during, 99)} ms`,
      'of that after it was admitted, 99 %': `at most ${boundMs(answeredBefore, answeredAfter)} ms`,
      'half / 99 % before the overload': `${waitMs(before, 50)} / ${waitMs(before, 99)} ms`,
      'refused with 429': connect,
      'refused with RESOURCE_EXHAUSTED': grpc,
      'answered otherwise, or not at all': all.reduce((sum, { failed }) => sum + failed, 0),
      'memory in the second and the last quarter': `${Math.round(first)} / ${Math.round(last)} MiB`,
    };
    const found = JSON.stringify(figures, null, 2);
    expect(all.flatMap(({ reasons }) => reasons)).toEqual([]);
    expect(connect, found).toBeGreaterThan(0);
    expect(grpc, found).toBeGreaterThan(0);
    expect(last, found).toBeLessThan(first * MOST_GROWTH);
    expect(rates[2]!, found).toBeGreaterThan(rates[0]! * FULL);
    expect(gateway.output.stderr).not.toMatch(/"level":"(?:error|fatal)"/);
    soak.done(figures);
  });
});
