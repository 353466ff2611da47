/**
 * Measures the cost of a cluster. Checks per second of a gateway in a cluster beside one outside, with caps at every
 * tier; how many agents register; how soon a registration counts at another gateway, and an operator's signal reaches
 * an agent there, also while one is suspended; what the log costs with many gateways and rows; and the load on the
 * database from simulated gateways, each with the real escrow of 20,000 checks/s. All on one machine, with the
 * database.
 */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { parseBudgetConfig } from '../src/core/budget/config.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../src/stores/postgres/postgres.ts';
import { startEmbeddedPostgres } from '../src/stores/trial-postgres/trial-postgres.ts';
import { confirmingMs, haltsAmong } from './lib/cluster-log.ts';
import { openControlFeed } from './lib/control-feed.ts';
import { endedBy, scratchFolder } from './lib/ending.ts';
import { loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line, percentile } from './lib/report.ts';
import { joinMember, type Trade } from './lib/simulated-member.ts';
import { ADMIN_KEY, AGENT, CHECK_BODY, type Subject, startGateway, TOKEN } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 5;
const SECONDS = isBrief ? 1 : 5;
const REGISTRATIONS = isBrief ? 5 : 200;
const SIGNALS = isBrief ? 10 : 500;
const WARM_SIGNALS = isBrief ? 0 : 200;
/** A suspended gateway is waited for until its lease is over. */
const SUSPENSIONS = isBrief ? 1 : 20;
const ORDERS_A_SUSPENSION = 10;
const BACK_WITHIN_MS = 30_000;
const BARRIERS = 200;
const BARRIER_ROUNDS = isBrief ? 1 : 5;
const BARRIER_MEMBERS = 100;
const STATE_ROWS = isBrief ? 10_000 : 3_000_000;
const HALTS = isBrief ? 5 : 100;
/** Operators do not act in step with anything that gateways do. */
const BETWEEN_SIGNALS_MS = 20;
const MEMBERS = isBrief ? [1, 3] : [1, 10, 50];
const AGENTS = 200;
const CHECKS_PER_SECOND = 20_000;
/** Until grants have found their size. */
const SETTLING_MS = isBrief ? 500 : 15_000;
const ATTEMPTS = 20;
const MEASURED_MS = isBrief ? 1_000 : 30_000;

const CAPS = {
  daily_limit_usd: 1e9,
  monthly_limit_usd: 1e9,
  org_daily_limit_usd: 1e8,
  org_monthly_limit_usd: 1e8,
  team_daily_limit_usd: 1e7,
  agent_daily_limit_usd: 1e6,
};

const folder = scratchFolder();
const quiet = { info: () => undefined, warn: (message: string) => console.error(message) };
const server = await startEmbeddedPostgres({ dataDir: folder }, quiet);
const stopServer = endedBy(() => server.stop());

async function newDatabase(name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}

const policy = join(folder, 'policy.yaml');
const caps = Object.entries(CAPS).map(([name, usd]) => `  ${name}: ${usd}`);
writeFileSync(
  policy,
  [
    'name: capped',
    'scope: global',
    'rules:',
    '  - { id: all, actions: ["*"], effect: allow }',
    'budget:',
    ...caps,
    '',
  ].join('\n'),
);
const CAPPED = { SVC_POLICY_PATH: policy };
const BODY = CHECK_BODY.replace('"resource"', '"estimatedCostUsd":0.001,"resource"');
const CHECK = 'svc.governance.v1.PolicyService/CheckAction';
const REGISTER = 'svc.governance.v1.AgentService/RegisterAgent';

heading('Checks of a gateway in a cluster and of one that is alone, every tier capped, over Connect JSON, audit on');
const url = await newDatabase('gateways');
const IN_CLUSTER = {
  ...CAPPED,
  SVC_CLUSTER: 'on',
  SVC_RATE_LIMIT_API: '0',
  SVC_DATABASE_URL: url,
  SVC_JWT_PRIVATE_KEY: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
};
const alone = await startGateway(CAPPED);
const member = await startGateway({ ...IN_CLUSTER, SVC_NODE_NAME: 'one' });
const rateOf = async (subject: Subject): Promise<number> => {
  const load = {
    url: `${subject.url}/${CHECK}`,
    headers: { 'content-type': 'application/json' },
    body: BODY,
    connections: isBrief ? 8 : 64,
    seconds: SECONDS,
  };
  return (await loadHttp(load)).perSecond;
};
for (const subject of [alone, member]) await rateOf(subject); // warm
const rates: { alone: number; member: number }[] = [];
for (let round = 0; round < ROUNDS; round += 1)
  rates.push({ alone: await rateOf(alone), member: await rateOf(member) });
line(
  'checks/s of a gateway alone',
  rates.map((round) => round.alone),
  '/s',
);
line(
  'checks/s of a gateway in a cluster',
  rates.map((round) => round.member),
  '/s',
);
headline(
  'rate of a gateway in a cluster / alone',
  rates.map((round) => round.member / round.alone),
  '×',
  'goal: at least 0.9',
);
await alone.stop();

const [other, third] = await Promise.all(
  ['two', 'three'].map((name) => startGateway({ ...IN_CLUSTER, SVC_NODE_NAME: name })),
);
const registering = await Promise.all(
  [member, other!, third!].map(({ url: at }, nth) =>
    loadHttp({
      url: `${at}/${REGISTER}`,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
      body: JSON.stringify({ agent: { ...AGENT, agentId: `${nth}-<id>` } }),
      allowed: /"credentialToken"/,
      connections: isBrief ? 8 : 64,
      seconds: SECONDS,
    }),
  ),
);
headline(
  'registrations/s through three gateways',
  registering.reduce((sum, { perSecond }) => sum + perSecond, 0),
  '/s',
  'each holds everywhere when it is answered',
);
let ordered = 0;
const posted = async (at: Subject, path: string, body: object, bearer?: string): Promise<Response> => {
  const headers = {
    'content-type': 'application/json',
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
  };
  const answer = await fetch(`${at.url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
};
const post = async (...asked: Parameters<typeof posted>) =>
  (await (await posted(...asked)).json()) as { decision?: string };
const usableAfterMs: number[] = [];
for (let nth = 0; nth < REGISTRATIONS; nth += 1) {
  const agent = { ...AGENT, agentId: `new-${nth}` };
  const credentialToken = `${TOKEN}-${nth}`;
  await post(member, REGISTER, { agent, credentialToken }, ADMIN_KEY);
  const startedMs = performance.now();
  const subject = { agent, credentialToken, traceId: `new-${nth}`, spanId: 's', action: 'tool.call', resource: 'web' };
  const { decision } = await post(other!, CHECK, subject);
  usableAfterMs.push(performance.now() - startedMs);
  if (decision !== 'DECISION_ALLOW') throw new Error(`a check at once after its registration was answered ${decision}`);
}
usableAfterMs.sort((a, b) => a - b);
line('first check at another gateway, p50', percentile(usableAfterMs, 50), 'ms', 'allowed at once, every time');
line('first check at another gateway, p99', percentile(usableAfterMs, 99), 'ms');

heading('An order at one gateway, and its signal to an agent that is connected to another');
await measureSignals('an operation of that gateway', member);
await measureSignals('an operation of a third gateway', third!);
heading('The same of one org, while a third gateway is suspended');
await measureSuspended();
await Promise.all([member.stop(), other!.stop(), third!.stop()]);

heading('The log that they share');
const confirmed: number[] = [];
for (let round = 0; round < BARRIER_ROUNDS; round += 1) confirmed.push(await confirmingMs(BARRIERS, BARRIER_MEMBERS));
line(
  `${BARRIERS} changes that ${BARRIER_MEMBERS} gateways confirm, of the main thread`,
  confirmed,
  'ms',
  'goal: at most 50',
);
const halted = (await haltsAmong(STATE_ROWS, HALTS, await newDatabase('halts'), quiet)).sort((a, b) => a - b);
line(
  `a halt beside ${STATE_ROWS.toLocaleString('en')} rows of state, p50`,
  percentile(halted, 50),
  'ms',
  'goal: at most 50',
);
line(`a halt beside ${STATE_ROWS.toLocaleString('en')} rows of state, p99`, percentile(halted, 99), 'ms');

const parsed = parseBudgetConfig(CAPS);
if (!parsed.ok) throw new Error(parsed.fault[0]?.problem);
for (const count of MEMBERS) {
  const name = `${count} gateway${count === 1 ? '' : 's'}`;
  heading(`What ${name} with 20,000 checks/s each ask of the database`);
  const ledger = await newDatabase(`ledger_${count}`);
  const postgres = new Postgres({ url: ledger, ...POSTGRES_DEFAULTS, maxConnections: 2 }, quiet);
  await postgres.start();
  const trade: Trade = { exchanges: 0, rows: 0, tookMs: [], spends: 0, waits: 0 };
  const options = { url: ledger, caps: parsed.value, agents: AGENTS, checksPerSecond: CHECKS_PER_SECOND, trade };
  const members = await Promise.all(
    Array.from({ length: count }, (_, at) => joinMember({ ...options, name: `gateway-${at}` })),
  );
  for (const each of members) each.start();
  await sleep(SETTLING_MS);
  const before = { ...trade, tookAt: trade.tookMs.length, wal: await walBytes(postgres), atMs: performance.now() };
  await sleep(MEASURED_MS);
  const secs = (performance.now() - before.atMs) / 1_000;
  const tookMs = trade.tookMs.slice(before.tookAt).sort((a, b) => a - b);
  const spends = trade.spends - before.spends;
  line(`${name}: exchanges`, (trade.exchanges - before.exchanges) / secs, '/s');
  line(`${name}: accounts`, (trade.rows - before.rows) / secs, '/s');
  line(`${name}: written by the database`, ((await walBytes(postgres)) - before.wal) / secs / 1_000, 'kB/s', 'its log');
  line(`${name}: an exchange, p50`, percentile(tookMs, 50), 'ms');
  line(`${name}: an exchange, p99`, percentile(tookMs, 99), 'ms');
  line(`${name}: agents that waited for the ledger`, (100 * (trade.waits - before.waits)) / Math.max(1, spends), '%');
  await Promise.all(members.map((each) => each.stop()));
  await expectExact(postgres);
  await postgres.close();
}
await stopServer();

/** Operations live at `home`, orders are given at `member`, and their agent is connected to `other`. */
async function measureSignals(what: string, home: Subject): Promise<void> {
  const orders = await openOrders(home, '');
  const answered: number[] = [];
  const signalled: number[] = [];
  for (let nth = 0; nth < WARM_SIGNALS + SIGNALS; nth += 1) {
    const took = await orders.order();
    if (nth < WARM_SIGNALS) continue;
    answered.push(took.answeredMs);
    signalled.push(took.signalledMs);
  }
  orders.close();
  for (const times of [answered, signalled]) times.sort((a, b) => a - b);
  headline(`${what}: signal to its agent, p50`, percentile(signalled, 50), 'ms', 'goal: less than 10');
  headline(`${what}: signal to its agent, p99`, percentile(signalled, 99), 'ms', 'goal: less than 50');
  line(`${what}: signal to its agent, longest`, signalled.at(-1)!, 'ms', `of ${SIGNALS}`);
  line(`${what}: answer to the order, p50`, percentile(answered, 50), 'ms', 'it holds everywhere');
  line(`${what}: answer to the order, p99`, percentile(answered, 99), 'ms');
}

/** The org is named: else all gateways are waited for before anything is ordered. */
async function measureSuspended(): Promise<void> {
  const orders = await openOrders(member, '?org_id=acme');
  const took: Awaited<ReturnType<typeof orders.order>>[] = [];
  for (let nth = 0; nth < SUSPENSIONS; nth += 1) {
    process.kill(third!.pid, 'SIGSTOP');
    took.push(...(await Promise.all(Array.from({ length: ORDERS_A_SUSPENSION }, () => orders.order()))));
    process.kill(third!.pid, 'SIGCONT');
    await untilConfirmed(orders);
  }
  orders.close();
  if (took.some(({ unconfirmed }) => unconfirmed !== 'three')) throw new Error('a suspended gateway was not named');
  const [answered, signalled] = [
    took.map(({ answeredMs }) => answeredMs).sort((a, b) => a - b),
    took.map(({ signalledMs }) => signalledMs).sort((a, b) => a - b),
  ];
  line('signal to its agent, p50', percentile(signalled, 50), 'ms');
  headline('signal to its agent, p99', percentile(signalled, 99), 'ms', 'goal: at most 50');
  line('answer to the order, p50', percentile(answered, 50), 'ms', 'it names who is suspended');
  headline('answer to the order, p99', percentile(answered, 99), 'ms', 'goal: at most 1,300');
}

async function untilConfirmed(orders: Awaited<ReturnType<typeof openOrders>>): Promise<void> {
  const endMs = performance.now() + BACK_WITHIN_MS;
  while ((await orders.order()).unconfirmed !== null)
    if (performance.now() > endMs) throw new Error('a gateway that goes on does not follow');
}

async function openOrders(home: Subject, query: string) {
  const waiting = new Map<string, (atMs: number) => void>();
  const feed = openControlFeed(other!.grpc, AGENT, TOKEN, (bytes) => {
    const atMs = performance.now();
    const opId = /signal-[a-z0-9-]+:s/.exec(bytes.toString('latin1'))?.[0];
    waiting.get(opId ?? '')?.(atMs);
  });
  await feed.opened;
  const order = async () => {
    ordered += 1;
    const traceId = `signal-${home.pid}-${ordered}`;
    const subject = { traceId, spanId: 's', action: 'tool.call', resource: 'web' };
    await post(home, CHECK, { agent: AGENT, credentialToken: TOKEN, ...subject });
    await sleep(BETWEEN_SIGNALS_MS * Math.random());
    const reached = new Promise<number>((resolve) => waiting.set(`${traceId}:s`, resolve));
    const startedMs = performance.now();
    const answer = await posted(member, `api/v1/ops/${traceId}:s/pause${query}`, {}, ADMIN_KEY);
    const answeredMs = performance.now() - startedMs;
    const signalledMs = (await reached) - startedMs;
    waiting.delete(`${traceId}:s`);
    return { answeredMs, signalledMs, unconfirmed: answer.headers.get('svc-unconfirmed') };
  };
  return { order, close: () => feed.close() };
}

async function walBytes(postgres: Postgres): Promise<number> {
  const { bytes } = await asked<{ bytes: string }>(
    postgres,
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bytes`,
  );
  return Number(bytes);
}

/** Everything was reported and returned, and the tiers agree. */
async function expectExact(postgres: Postgres): Promise<void> {
  const { held, tiers } = await asked<{ held: string; tiers: string }>(
    postgres,
    `SELECT sum(out) AS held, count(DISTINCT spent) AS tiers FROM (SELECT sum(out) AS out, sum(spent) AS spent
       FROM budget_account WHERE period LIKE 'd:%' GROUP BY split_part(owner, '/', 1)) AS tier`,
  );
  if (Number(held) !== 0 || Number(tiers) !== 1) throw new Error(`the ledger is off: ${held} held, ${tiers} sums`);
}

/** The one row. A database that is kept this busy may need a second attempt. */
async function asked<Row extends object>(postgres: Postgres, text: string): Promise<Row> {
  for (let attempt = 1; ; attempt += 1) {
    const read = await postgres.attempt((on) => on.query<Row>(text));
    if (read.ok) return read.value.rows[0]!;
    if (attempt === ATTEMPTS) throw new Error(JSON.stringify(read.fault));
    await sleep(1_000);
  }
}
