/**
 * How much of the rate of a bare server of the same HTTP library is left for CheckAction over Connect JSON, with
 * everything the gateway does, and what does it cost beyond that server? By the native HTTP library, and by node:http.
 */

import { findNativeBuild } from '../src/doors/engine/native-builds.ts';
import { CHECK_PATH } from './lib/answers.ts';
import { httpClient, type LoadResult, loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line, median } from './lib/report.ts';
import { CHECK_BODY, HTTP_ENGINES, type HttpEngine, type Subject, startBare, startGateway } from './lib/subject.ts';
import { usageOf } from './lib/usage.ts';

const SECONDS = isBrief ? 1 : 6;
const ROUNDS = isBrief ? 1 : 3;

type Measured = LoadResult & { readonly cpuUs: number };
type Round = { readonly bare: Measured; readonly gateway: Measured };
/** With more, batches are large, and the rate's goal is easy. */
const RATE_GOAL_UP_TO = 256;

async function measure(subject: Subject, connections: number, seconds = SECONDS): Promise<Measured> {
  const before = usageOf(subject.pid).cpuUs;
  const result = await loadHttp({
    url: subject.url + CHECK_PATH,
    headers: { 'content-type': 'application/json' },
    body: CHECK_BODY,
    connections,
    seconds,
  });
  return { ...result, cpuUs: (usageOf(subject.pid).cpuUs - before) / (result.perSecond * seconds) };
}

async function alternate(engine: HttpEngine, connections: number): Promise<readonly Round[]> {
  const bare = await startBare('bare-http.js', engine);
  const gateway = await startGateway({ SVC_HTTP_ENGINE: engine });
  // Until the compiler has seen enough of both, their rates still climb.
  for (const subject of [bare, gateway]) await measure(subject, connections, isBrief ? 1 : 5);
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push({ bare: await measure(bare, connections), gateway: await measure(gateway, connections) });
  await bare.stop();
  await gateway.stop();
  const failed = rounds.reduce((sum, round) => sum + round.gateway.failed + round.bare.failed, 0);
  if (failed > 0) throw new Error(`${failed} requests failed`);
  return rounds;
}

function report(name: string, connections: number, rounds: readonly Round[], isNative: boolean): void {
  for (const who of ['bare', 'gateway'] as const) {
    line(
      `${name}, ${who}`,
      rounds.map((round) => round[who].perSecond),
      'checks/s',
      `p99 ${median(rounds.map((round) => round[who].p99Ms)).toFixed(2)} ms`,
    );
    line(
      `${name}, ${who}: CPU`,
      rounds.map((round) => round[who].cpuUs),
      'µs/check',
    );
  }
  const share = rounds.map(({ gateway, bare }) => gateway.perSecond / bare.perSecond);
  const own = rounds.map(({ gateway, bare }) => gateway.cpuUs - bare.cpuUs);
  const ownShare = rounds.map(({ gateway, bare }) => (gateway.cpuUs - bare.cpuUs) / bare.cpuUs);
  const show = isNative && connections <= RATE_GOAL_UP_TO ? headline : line;
  show(`${name}: rate / of a bare server`, share, '×', isNative ? 'goal: at least 0.65' : '');
  show(`${name}: own cost of a check`, own, 'µs', 'processor time beyond the bare server');
  line(`${name}: own cost / the bare server's`, ownShare, '×', `goal: at most ${connections <= 256 ? 0.8 : 1}`);
}

heading(`CheckAction over Connect JSON against a bare server of the same HTTP library (${httpClient})`);
if (httpClient === 'autocannon')
  console.log('  wrk is not installed: autocannon is slower than what it measures, so both rates are its own');
for (const engine of HTTP_ENGINES) {
  if (engine === 'native' && findNativeBuild().kind === 'none') continue;
  const isNative = engine === 'native';
  for (const connections of isBrief ? [64] : isNative ? [64, 256, 1_024] : [64, 256])
    report(
      `Connect${isNative ? '' : ' on node:http'}, ${connections.toLocaleString('en')} connections`,
      connections,
      await alternate(engine, connections),
      isNative,
    );
}
