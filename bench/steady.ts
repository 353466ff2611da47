/** How long does an agent wait for its answer while the gateway decides a steady 10,000 checks a second? */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { cpuSecondsOf, run } from './lib/http-load.ts';
import { heading, isBrief, line, percentile } from './lib/report.ts';
import { CHECK_BODY, startBare, startGateway } from './lib/subject.ts';

const RATE = 10_000;
const SECONDS = isBrief ? 1 : 10;
// Each connection is paced by a timer of its own, and all of them fire together: with many, the client measures its own burst.
const CONNECTIONS = 10;
const PATH = '/svc.governance.v1.PolicyService/CheckAction';
const hasH2load = spawnSync('sh', ['-c', 'command -v h2load']).status === 0;

/** Waiting times in milliseconds, sorted. h2load paces each connection by itself and logs every request. */
async function waitsWithH2load(url: string): Promise<Float64Array> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    writeFileSync(join(folder, 'body'), CHECK_BODY.replace('<id>', String(Date.now())));
    await run('h2load', ['--h1', '-t1', `-c${CONNECTIONS}`, `-n${RATE * SECONDS}`, `--rps=${RATE / CONNECTIONS}`, '-H', 'content-type: application/json',
      '-d', join(folder, 'body'), `--log-file=${join(folder, 'log')}`, url + PATH]);
    const microseconds = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n').map((each) => Number(each.split('\t')[2]));
    return Float64Array.from(microseconds, (value) => value / 1000).sort();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

heading(`Waiting time at a steady ${RATE.toLocaleString('en')} checks a second over Connect JSON, audit on`);
const gateway = await startGateway();
const bare = await startBare('bare-http.js');
if (hasH2load) {
  await waitsWithH2load(gateway.url); // warm
  const cpuBefore = cpuSecondsOf(gateway.pid);
  const startedMs = performance.now();
  const waits = await waitsWithH2load(gateway.url);
  const seconds = (performance.now() - startedMs) / 1000;
  line('rate', waits.length / seconds, 'checks/s', `${((cpuSecondsOf(gateway.pid) - cpuBefore) / seconds).toFixed(2)} cores`);
  for (const percent of [50, 90, 99, 99.9]) line(`p${percent}`, percentile(waits, percent), 'ms', percent === 99 ? 'goal: under 2' : '');
  line('longest', waits[waits.length - 1] ?? Number.NaN, 'ms');
  const bareWaits = await waitsWithH2load(bare.url);
  line('a bare server, p50', percentile(bareWaits, 50), 'ms', 'the client\'s own share of the waiting');
  line('a bare server, p99', percentile(bareWaits, 99), 'ms');
} else {
  console.log('  h2load is not installed: autocannon, whose own pauses are in the figures');
  const { latency, requests } = await autocannon({ url: gateway.url + PATH, method: 'POST', connections: CONNECTIONS, duration: SECONDS, overallRate: RATE, headers: { 'content-type': 'application/json' }, body: CHECK_BODY.replace('<id>', '1') });
  line('rate', requests.average, 'checks/s');
  line('p50', latency.p50, 'ms');
  line('p99', latency.p99, 'ms', 'goal: under 2');
}
await gateway.stop();
await bare.stop();
