/** Does a check stay as fast while rules, agents and dashboards grow in number? */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDashboards } from './lib/dashboards.ts';
import { scratchFolder } from './lib/ending.ts';
import { type Everyday, type EverydayLoad, inRounds, measureEveryday } from './lib/everyday-load.ts';
import { isBrief } from './lib/options.ts';
import { heading } from './lib/report.ts';
import { ADMIN_KEY, CHECK_BODY, type Subject, startGateway, TOKEN } from './lib/subject.ts';
import { Table } from './lib/table.ts';

const ROUNDS = isBrief ? 1 : 3;
const SECONDS = isBrief ? 0.5 : 3;
const RULES = isBrief ? [10, 1_000] : [10, 1_000, 10_000];
const AGENTS = isBrief ? [1, 100] : [1, 10_000, 100_000];
const DASHBOARDS = isBrief ? [0, 20] : [0, 1_000];
/** Registrations on their way at once. */
const REGISTERING = 256;

const table = new Table('growth');

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
  table.row(
    `${name}: CPU`,
    rounds.map(({ cpuUsPerCheck }) => cpuUsPerCheck),
    'µs/check',
  );
  table.row(
    `${name}: p50`,
    rounds.map(({ p50 }) => p50),
    'ms',
  );
  table.row(
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
  await Promise.all([...subjects.values()].map(([subject]) => subject.stop()));
}

const shownCount = (count: number): string => count.toLocaleString('en');

heading('Checks at 5,000/s, arriving at random, with more and more rules, agents and dashboards');
const byRules = new Map<string, readonly [Subject, EverydayLoad]>();
for (const rules of RULES)
  byRules.set(`${shownCount(rules)} global rules with patterns`, [
    await gatewayWith(rules),
    { rate: 5_000, seconds: SECONDS },
  ]);
await compare(byRules);

const byAgents = new Map<string, readonly [Subject, EverydayLoad]>();
for (const agents of AGENTS) {
  const gateway = await gatewayWith(10);
  await registerAll(gateway.url, agents);
  // Once round all of them takes as long as that: only then does each come again.
  const seconds = Math.max(SECONDS, (2 * agents) / 5_000);
  byAgents.set(`${shownCount(agents)} agents in turn`, [gateway, { rate: 5_000, seconds, body: FLEET_BODY, agents }]);
}
await compare(byAgents);

const byDashboards = new Map<string, readonly [Subject, EverydayLoad]>();
const closings: (() => Promise<void>)[] = [];
for (const dashboards of DASHBOARDS) {
  const gateway = await gatewayWith(10);
  if (dashboards > 0) closings.push(await openDashboards(gateway.url, dashboards));
  byDashboards.set(`${shownCount(dashboards)} dashboards, at 2,000/s`, [gateway, { rate: 2_000, seconds: SECONDS }]);
}
await compare(byDashboards);
for (const close of closings) await close();
table.end();
