/** How long does an agent wait for its answer while the gateway decides a steady 10,000 checks a second? */
import { cpuSecondsOf } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { checkSteadily, pacedClient } from './lib/paced-load.ts';
import { heading, line, median } from './lib/report.ts';
import { type Subject, startBare, startGateway } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 3;
const PACE = { rate: 10_000, seconds: isBrief ? 1 : 5, connections: 10 };

async function measure(subject: Subject) {
  const before = cpuSecondsOf(subject.pid);
  const startedMs = performance.now();
  const waits = await checkSteadily(subject.url, PACE);
  return { ...waits, cores: (cpuSecondsOf(subject.pid) - before) / ((performance.now() - startedMs) / 1000) };
}

heading(
  `Waiting time at a steady ${PACE.rate.toLocaleString('en')} checks a second over Connect JSON, audit on (${pacedClient})`,
);
if (pacedClient === 'autocannon')
  console.log('  h2load is not installed: autocannon, whose own pauses are in the figures');
const gateway = await startGateway();
const bare = await startBare('bare-http.js');
for (const subject of [gateway, bare]) await measure(subject); // warm
const rounds: { gateway: Awaited<ReturnType<typeof measure>>; bare: Awaited<ReturnType<typeof measure>> }[] = [];
for (let round = 0; round < ROUNDS; round += 1)
  rounds.push({ bare: await measure(bare), gateway: await measure(gateway) });
await gateway.stop();
await bare.stop();

const middle = (of: (round: (typeof rounds)[number]) => number): number => median(rounds.map(of));
line(
  'rate',
  middle((r) => r.gateway.perSecond),
  'checks/s',
  `${middle((r) => r.gateway.cores).toFixed(2)} cores`,
);
line(
  'p50',
  middle((r) => r.gateway.p50),
  'ms',
);
line(
  'p90',
  middle((r) => r.gateway.p90),
  'ms',
);
line(
  'p99',
  middle((r) => r.gateway.p99),
  'ms',
  'goal: under 2',
);
line(
  'p99.9',
  middle((r) => r.gateway.p999),
  'ms',
);
line(
  'longest',
  middle((r) => r.gateway.longest),
  'ms',
);
line(
  `bare ${bare.library}, p50`,
  middle((r) => r.bare.p50),
  'ms',
  "the client's own share of the waiting",
);
line(
  `bare ${bare.library}, p99`,
  middle((r) => r.bare.p99),
  'ms',
);
