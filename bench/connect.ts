/**
 * How much of the rate of a bare server of the same HTTP library is left for CheckAction over Connect JSON, with
 * everything the gateway does?
 */
import { httpClient, type LoadResult, loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line, median } from './lib/report.ts';
import { CHECK_BODY, type Subject, startBare, startGateway } from './lib/subject.ts';
import { usageOf } from './lib/usage.ts';

const SECONDS = isBrief ? 1 : 6;
const ROUNDS = isBrief ? 1 : 3;
const PATH = '/svc.governance.v1.PolicyService/CheckAction';

type Measured = LoadResult & { readonly cpuUs: number };
/** With more, batches are large, and the goal is easy. */
const GOAL_UP_TO = 256;

async function measure(subject: Subject, connections: number): Promise<Measured> {
  const before = usageOf(subject.pid).cpuUs;
  const result = await loadHttp({
    url: subject.url + PATH,
    headers: { 'content-type': 'application/json' },
    body: CHECK_BODY,
    connections,
    seconds: SECONDS,
  });
  return { ...result, cpuUs: (usageOf(subject.pid).cpuUs - before) / (result.perSecond * SECONDS) };
}

heading(`CheckAction over Connect JSON against a bare server of the same HTTP library (${httpClient})`);
if (httpClient === 'autocannon')
  console.log('  wrk is not installed: autocannon is slower than what it measures, so both rates are its own');
for (const connections of isBrief ? [64] : [64, 256, 1_024]) {
  const bare = await startBare('bare-http.js');
  const gateway = await startGateway();
  // Until the compiler has seen enough of both, their rates still climb.
  for (const subject of [bare, gateway])
    await loadHttp({
      url: subject.url + PATH,
      headers: { 'content-type': 'application/json' },
      body: CHECK_BODY,
      connections,
      seconds: isBrief ? 1 : 5,
    });
  const rounds: { bare: Measured; gateway: Measured }[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push({ bare: await measure(bare, connections), gateway: await measure(gateway, connections) });
  await bare.stop();
  await gateway.stop();
  const name = `${connections.toLocaleString('en')} connections`;
  for (const [who, of] of [
    [`bare ${bare.library}`, (round) => round.bare],
    ['gateway', (round) => round.gateway],
  ] as readonly (readonly [string, (round: (typeof rounds)[number]) => Measured])[]) {
    line(
      `${name}, ${who}`,
      rounds.map((round) => of(round).perSecond),
      'checks/s',
      `p99 ${median(rounds.map((round) => of(round).p99Ms)).toFixed(2)} ms`,
    );
    line(
      `${name}, ${who}: CPU`,
      rounds.map((round) => of(round).cpuUs),
      'µs/check',
    );
  }
  const share = rounds.map((round) => round.gateway.perSecond / round.bare.perSecond);
  if (connections <= GOAL_UP_TO)
    headline(`Connect, ${name}: rate / of a bare server`, share, '×', 'goal: at least 0.65');
  else line(`${name}, gateway / bare`, share, '×');
  const failed = rounds.reduce((sum, r) => sum + r.gateway.failed + r.bare.failed, 0);
  if (failed > 0) throw new Error(`${failed} requests failed`);
}
