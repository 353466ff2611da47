/** Does a check stay as fast while rules, agents and dashboards grow in number? */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHECK_PATH } from './lib/answers.ts';
import { openDashboards } from './lib/dashboards.ts';
import { scratchFolder } from './lib/ending.ts';
import { type Everyday, type EverydayLoad, inRounds, measureEveryday } from './lib/everyday-load.ts';
import { loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line } from './lib/report.ts';
import { ADMIN_KEY, CHECK_BODY, type Subject, startGateway, TOKEN } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 3;
const SECONDS = isBrief ? 0.5 : 3;
const RULES = isBrief ? [10, 1_000] : [10, 1_000, 10_000];
const AGENTS = isBrief ? [1, 100] : [1, 10_000, 100_000];
const DASHBOARDS = isBrief ? [0, 20] : [0, 1_000];
const RELOADED_RULES = 1_000;
/** Registrations on their way at once. */
const REGISTERING = 256;

const shownCount = (count: number): string => count.toLocaleString('en');

/** Global rules, each with a pattern of one of four kinds, of which none matches; after them, the one that does. */
function policyOf(rules: number): string {
  const patterns = [
    (at: number) => `resources: ["tool_${at}_*"]`,
    (at: number) => `resources: ["*_suffix_${at}"]`,
    (at: number) => `resources: ["*middle_${at}.*"]`,
    (at: number) => `actions: ["act${at}.*"]`,
  ];
  const lines = Array.from(
    { length: rules - 1 },
    (_, at) => `  - { id: r${at}, effect: deny, ${patterns[at % patterns.length]?.(at)} }`,
  );
  return `name: growth\nscope: global\nrules:\n${lines.join('\n')}\n  - { id: web, effect: allow, actions: ["tool.call"], resources: ["web_*"] }\n`;
}

function gatewayWith(rules: number): Promise<Subject> {
  const file = join(scratchFolder(), 'growth.yaml');
  writeFileSync(file, policyOf(rules));
  return startGateway({ SVC_POLICY_PATH: file, SVC_RATE_LIMIT_API: '0' });
}

const agentOf = (nth: number | string) => ({ orgId: 'acme', teamId: 'fleet', agentId: `agent-${nth}` });
const FLEET_BODY = JSON.stringify({
  ...JSON.parse(CHECK_BODY),
  agent: agentOf('<agent>'),
  credentialToken: `${TOKEN}-<agent>`,
});

async function registerAll(url: string, count: number): Promise<void> {
  let next = 0;
  const registerNext = async (): Promise<void> => {
    while (next < count) {
      const agent = next;
      next += 1;
      const response = await fetch(`${url}/svc.governance.v1.AgentService/RegisterAgent`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ agent: agentOf(agent), credentialToken: `${TOKEN}-${agent}` }),
      });
      if (!response.ok) throw new Error(await response.text());
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: REGISTERING }, registerNext));
}

function report(name: string, rounds: readonly Everyday[]): void {
  line(
    `${name}: CPU`,
    rounds.map(({ cpuUsPerCheck }) => cpuUsPerCheck),
    'µs/check',
  );
  line(
    `${name}: p50`,
    rounds.map(({ p50 }) => p50),
    'ms',
  );
  line(
    `${name}: p99`,
    rounds.map(({ p99 }) => p99),
    'ms',
  );
}

/** All sizes at once, so that each round meets every one of them. */
async function compare(subjects: ReadonlyMap<string, readonly [Subject, EverydayLoad]>): Promise<void> {
  for (const [subject, load] of subjects.values()) await measureEveryday(subject, load); // warm
  const measures = [...subjects].map(
    ([name, [subject, load]]) => [name, () => measureEveryday(subject, load)] as const,
  );
  const results = await inRounds(ROUNDS, Object.fromEntries(measures));
  for (const [name, rounds] of Object.entries(results)) report(name, rounds);
}

const stopAll = (subjects: ReadonlyMap<string, readonly [Subject, EverydayLoad]>): Promise<unknown> =>
  Promise.all([...subjects.values()].map(([subject]) => subject.stop()));

/** How much of the rate with few rules is left with many, when a client asks as fast as it is answered. */
async function compareRates(few: Subject, many: Subject): Promise<void> {
  const rateOf = async ({ url }: Subject): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const load = { url: url + CHECK_PATH, headers, body: CHECK_BODY, connections: 64, seconds: Math.ceil(SECONDS) };
    return (await loadHttp(load)).perSecond;
  };
  const shares: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const rate = await rateOf(few);
    shares.push((await rateOf(many)) / rate);
  }
  headline(
    `rate with ${shownCount(RULES.at(-1) ?? 0)} pattern rules / with ${RULES[0]}`,
    shares,
    '×',
    'goal: at least 0.9',
  );
}

/** How much longer the slowest checks take while all rules are read again, three times. */
async function compareReloads(): Promise<void> {
  const file = join(scratchFolder(), 'reloaded.yaml');
  writeFileSync(file, policyOf(RELOADED_RULES));
  const gateway = await startGateway({ SVC_POLICY_PATH: file });
  const load = { rate: 5_000, seconds: SECONDS };
  await measureEveryday(gateway, load); // warm
  const longer: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const calm = await measureEveryday(gateway, load);
    const reloads = [1, 2, 3].map((nth) =>
      setTimeout(
        () => {
          writeFileSync(file, policyOf(RELOADED_RULES + nth));
          process.kill(gateway.pid, 'SIGHUP');
        },
        (SECONDS * 1_000 * nth) / 4,
      ),
    );
    const reloading = await measureEveryday(gateway, load);
    for (const timer of reloads) clearTimeout(timer);
    longer.push(reloading.p99 / calm.p99);
  }
  await gateway.stop();
  headline(`p99 while ${shownCount(RELOADED_RULES)} rules are reloaded / calm`, longer, '×', 'goal: at most 3');
}

heading('Checks at 5,000/s, arriving at random, with more and more rules, agents and dashboards');
const byRules = new Map<string, readonly [Subject, EverydayLoad]>();
for (const rules of RULES)
  byRules.set(`${shownCount(rules)} global rules with patterns`, [
    await gatewayWith(rules),
    { rate: 5_000, seconds: SECONDS },
  ]);
await compare(byRules);
const compared = [...byRules.values()].map(([subject]) => subject);
const [few, many] = [compared[0], compared.at(-1)];
if (few !== undefined && many !== undefined) await compareRates(few, many);
await stopAll(byRules);
await compareReloads();

const byAgents = new Map<string, readonly [Subject, EverydayLoad]>();
for (const agents of AGENTS) {
  const gateway = await gatewayWith(10);
  await registerAll(gateway.url, agents);
  // Once round all of them takes as long as that: only then does each come again.
  const seconds = Math.max(SECONDS, (2 * agents) / 5_000);
  byAgents.set(`${shownCount(agents)} agents in turn`, [gateway, { rate: 5_000, seconds, body: FLEET_BODY, agents }]);
}
await compare(byAgents);
await stopAll(byAgents);

const byDashboards = new Map<string, readonly [Subject, EverydayLoad]>();
const closings: (() => Promise<void>)[] = [];
for (const dashboards of DASHBOARDS) {
  const gateway = await gatewayWith(10);
  if (dashboards > 0) closings.push(await openDashboards(gateway.url, dashboards));
  byDashboards.set(`${shownCount(dashboards)} dashboards, at 2,000/s`, [gateway, { rate: 2_000, seconds: SECONDS }]);
}
await compare(byDashboards);
for (const close of closings) await close();
await stopAll(byDashboards);
