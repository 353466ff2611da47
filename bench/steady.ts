/**
 * How long does an agent wait for its answer while the gateway decides a steady number of checks, and what does a check
 * cost? Checks arrive at random, each about a new operation, beside a bare server of the same HTTP library.
 */
import { inRounds, measureEveryday } from './lib/everyday-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line } from './lib/report.ts';
import { startBare, startGateway } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 3;
const SECONDS = isBrief ? 0.5 : 4;
const GOALS: readonly (readonly [rate: number, p99Ms: number])[] = [
  [5_000, 2],
  [10_000, 4],
];

heading('Waiting time of checks that arrive at random, each about a new operation, over Connect JSON, audit on');
const gateway = await startGateway();
const bare = await startBare('bare-http.js');
for (const subject of [gateway, bare]) await measureEveryday(subject, { rate: 5_000, seconds: SECONDS }); // warm
for (const [rate, goal] of GOALS) {
  const load = { rate, seconds: SECONDS };
  const results = await inRounds(ROUNDS, {
    bare: () => measureEveryday(bare, load),
    gateway: () => measureEveryday(gateway, load),
  });
  for (const [name, rounds] of Object.entries(results)) {
    const title = `${name} at ${rate.toLocaleString('en')}/s`;
    line(
      `${title}, p50`,
      rounds.map(({ p50 }) => p50),
      'ms',
    );
    const p99s = rounds.map((round) => round.p99);
    if (name === 'gateway')
      headline(`p99 of checks at ${rate.toLocaleString('en')}/s`, p99s, 'ms', `goal: at most ${goal}`);
    else line(`${title}, p99`, p99s, 'ms');
    line(
      `${title}, p99.9`,
      rounds.map(({ p999 }) => p999),
      'ms',
    );
    line(
      `${title}, CPU`,
      rounds.map(({ cpuUsPerCheck }) => cpuUsPerCheck),
      'µs/check',
    );
    line(
      `${title}, context switches`,
      rounds.map(({ switchesPerCheck }) => switchesPerCheck),
      '/check',
    );
  }
}
await gateway.stop();
await bare.stop();
