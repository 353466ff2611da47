/** Measures the cost of a check while the gateway has little to do, beside a bare server of the same HTTP library. */
import { inRounds, measureEveryday } from './lib/everyday-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line } from './lib/report.ts';
import { startBare, startGateway } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 5;
const LOAD = { rate: 2_000, seconds: isBrief ? 0.5 : 3 };

heading(
  `Processor time of a check at ${LOAD.rate.toLocaleString('en')}/s, arriving at random, over Connect JSON, audit on`,
);
const gateway = await startGateway();
const bare = await startBare('bare-http.js');
for (const subject of [gateway, bare]) await measureEveryday(subject, LOAD); // warm
const results = await inRounds(ROUNDS, {
  bare: () => measureEveryday(bare, LOAD),
  gateway: () => measureEveryday(gateway, LOAD),
});
await gateway.stop();
await bare.stop();
for (const [name, rounds] of Object.entries(results)) {
  line(
    `${name}, CPU`,
    rounds.map(({ cpuUsPerCheck }) => cpuUsPerCheck),
    'µs/check',
  );
  line(
    `${name}, context switches`,
    rounds.map(({ switchesPerCheck }) => switchesPerCheck),
    '/check',
  );
  line(
    `${name}, p50`,
    rounds.map(({ p50 }) => p50),
    'ms',
  );
  line(
    `${name}, p99`,
    rounds.map(({ p99 }) => p99),
    'ms',
  );
}
headline(
  `CPU of a check at ${LOAD.rate.toLocaleString('en')}/s / of a bare HTTP server`,
  results.gateway.map(({ cpuUsPerCheck }, round) => cpuUsPerCheck / (results.bare[round]?.cpuUsPerCheck ?? 0)),
  '×',
  'goal: at most 2.2',
);
headline(
  `own cost of a check at ${LOAD.rate.toLocaleString('en')}/s`,
  results.gateway.map(({ cpuUsPerCheck }, round) => cpuUsPerCheck - (results.bare[round]?.cpuUsPerCheck ?? 0)),
  'µs',
  'processor time beyond the bare server',
);
