/** Checks at a steady rate, and how long each waited: with h2load where it is installed, else with autocannon. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { expectAllowed, readH2loadLog } from './answers.ts';
import { scratchFolder } from './ending.ts';
import { run } from './http-load.ts';
import { percentile } from './report.ts';
import { CHECK_BODY } from './subject.ts';

export type Pace = { readonly rate: number; readonly seconds: number; readonly connections: number };

/** In milliseconds. */
export type Waits = {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly longest: number;
  readonly perSecond: number;
};

const PATH = '/svc.governance.v1.PolicyService/CheckAction';
const HEADERS = { 'content-type': 'application/json' };

export const pacedClient = spawnSync('sh', ['-c', 'command -v h2load']).status === 0 ? 'h2load' : 'autocannon';

/** Checks of one running operation, at `url` without its path. */
export async function checkSteadily(url: string, pace: Pace): Promise<Waits> {
  const body = CHECK_BODY.replace('<id>', String(Date.now()));
  try {
    return await (pacedClient === 'h2load'
      ? withH2load(url + PATH, pace, body)
      : withAutocannon(url + PATH, pace, body));
  } finally {
    // Also where checks failed: the answer tells more than their number.
    await expectAllowed(url + PATH, HEADERS, body);
  }
}

/**
 * h2load paces each connection by a timer of its own, and all of them fire together: with many, it measures its own
 * burst.
 */
async function withH2load(url: string, { rate, seconds, connections }: Pace, body: string): Promise<Waits> {
  const folder = scratchFolder();
  try {
    writeFileSync(join(folder, 'body'), body);
    const startedMs = performance.now();
    await run('h2load', [
      '--h1',
      '-t1',
      `-c${connections}`,
      `-n${rate * seconds}`,
      `--rps=${rate / connections}`,
      '-H',
      'content-type: application/json',
      '-d',
      join(folder, 'body'),
      `--log-file=${join(folder, 'log')}`,
      url,
    ]);
    const perSecond = (rate * seconds * 1000) / (performance.now() - startedMs);
    const { waits, failed } = readH2loadLog(readFileSync(join(folder, 'log'), 'utf8'), rate * seconds);
    if (failed > 0) throw new Error(`${failed} checks failed`);
    return {
      p50: percentile(waits, 50),
      p90: percentile(waits, 90),
      p99: percentile(waits, 99),
      p999: percentile(waits, 99.9),
      longest: waits[waits.length - 1] ?? Number.NaN,
      perSecond,
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Its own pauses are in the figures, and it counts whole milliseconds. */
async function withAutocannon(url: string, { rate, seconds, connections }: Pace, body: string): Promise<Waits> {
  const { latency, requests, non2xx, errors } = await autocannon({
    url,
    method: 'POST',
    connections,
    duration: seconds,
    overallRate: rate,
    headers: HEADERS,
    body,
  });
  if (non2xx + errors > 0) throw new Error(`${non2xx + errors} checks failed`);
  return {
    p50: latency.p50,
    p90: latency.p90,
    p99: latency.p99,
    p999: latency.p99_9,
    longest: latency.max,
    perSecond: requests.average,
  };
}
