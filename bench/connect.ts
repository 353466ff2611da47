/**
 * How much of the rate of a bare server of the same HTTP library is left for CheckAction over Connect JSON, with
 * everything the gateway does?
 */
import { cpuSecondsOf, httpClient, type LoadResult, loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, median, ratio } from './lib/report.ts';
import { CHECK_BODY, type Subject, startBare, startGateway } from './lib/subject.ts';

const SECONDS = isBrief ? 1 : 6;
const ROUNDS = isBrief ? 1 : 3;
const PATH = '/svc.governance.v1.PolicyService/CheckAction';

type Measured = LoadResult & { readonly cpu: number };

async function measure(subject: Subject, connections: number): Promise<Measured> {
  const before = cpuSecondsOf(subject.pid);
  const startedMs = performance.now();
  const result = await loadHttp({
    url: subject.url + PATH,
    headers: { 'content-type': 'application/json' },
    body: CHECK_BODY,
    connections,
    seconds: SECONDS,
  });
  const cpu = (cpuSecondsOf(subject.pid) - before) / ((performance.now() - startedMs) / 1000);
  return { ...result, cpu };
}

heading(`CheckAction over Connect JSON against a bare server of the same HTTP library (${httpClient})`);
if (httpClient === 'autocannon')
  console.log('  wrk is not installed: autocannon is slower than what it measures, so both rates are its own');
for (const connections of [64, 256, 1_024]) {
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
  const middle = (of: (round: (typeof rounds)[number]) => number): number => median(rounds.map(of));
  console.log(`  ${connections} connections`);
  line(
    `bare ${bare.library}`,
    middle((r) => r.bare.perSecond),
    'checks/s',
    `p99 ${middle((r) => r.bare.p99Ms).toFixed(2)} ms, ${middle((r) => r.bare.cpu).toFixed(2)} cores`,
  );
  line(
    'gateway',
    middle((r) => r.gateway.perSecond),
    'checks/s',
    `p99 ${middle((r) => r.gateway.p99Ms).toFixed(2)} ms, ${middle((r) => r.gateway.cpu).toFixed(2)} cores`,
  );
  ratio(
    'gateway / bare',
    middle((r) => r.gateway.perSecond / r.bare.perSecond),
    1,
    0.6,
  );
  const failed = rounds.reduce((sum, r) => sum + r.gateway.failed + r.bare.failed, 0);
  if (failed > 0) throw new Error(`${failed} requests failed`);
}
