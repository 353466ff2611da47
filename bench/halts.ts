/**
 * How long does it take to halt an org with 100,000 running operations, when has the last signal reached its agent, and
 * how long do the checks of another org wait meanwhile?
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openControlFeed } from './lib/control-feed.ts';
import { loadOpenly } from './lib/open-loop.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';
import { ADMIN_KEY, CHECK_BODY, startGateway, TOKEN } from './lib/subject.ts';

const OPS = isBrief ? 5_000 : 100_000;
const BATCH = 1_000;
const ROUNDS = isBrief ? 1 : 5;
const PACE = { rate: 1_000, seconds: isBrief ? 1 : 4, connections: 20 };
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const AGENT = { orgId: 'globex', teamId: 'search', agentId: 'crawler' };
const CREDENTIAL = `globex-${TOKEN}`;
/**
 * The agent that is listened to. Its operations are the youngest of the org, so that they are the last to be stopped.
 */
const WATCHED = { ...AGENT, agentId: 'watched' };
const WATCHED_OPS = 100;

heading(`Halting an org with ${OPS.toLocaleString('en')} running operations`);
const gateway = await startGateway();
const answered: number[] = [];
const signalled: number[] = [];
const longest: number[] = [];
const calm: number[] = [];
for (const agent of [AGENT, WATCHED])
  await post('/svc.governance.v1.AgentService/RegisterAgent', { agent, credentialToken: CREDENTIAL + agent.agentId });
const listener = listen();
for (let round = 0; round < ROUNDS; round += 1) {
  await begin(round);
  listener.count = 0;
  const load = { url: gateway.url + CHECK, body: CHECK_BODY, ...PACE };
  calm.push((await loadOpenly(load)).longest);
  const waits = loadOpenly(load);
  await sleep((PACE.seconds * 1_000) / 2);
  const sentAtMs = performance.now();
  const { halt, ops_affected } = await post('/api/v1/halts', { scope: `org:${AGENT.orgId}`, reason: 'a benchmark' });
  const answeredAtMs = performance.now();
  answered.push(answeredAtMs - sentAtMs);
  if (ops_affected !== OPS) throw new Error(`the halt stopped ${ops_affected} operations of ${OPS}`);
  longest.push((await waits).longest);
  if (listener.count !== WATCHED_OPS) throw new Error(`${listener.count} signals of ${WATCHED_OPS} came`);
  signalled.push(Math.max(0, listener.lastAtMs - answeredAtMs));
  await post(`/api/v1/halts/${halt.id}/release`, { reason: 'the benchmark goes on' });
}
listener.close();
await gateway.stop();
line('the halt is answered after', answered, 'ms', 'goal: at most 1,000');
line('the last signal reaches its agent after the answer by', signalled, 'ms', 'goal: at most 50');
line('longest wait of another org meanwhile', longest, 'ms', 'goal: at most 20 more than calm');
line('longest wait of another org, calm', calm, 'ms');

async function begin(round: number): Promise<void> {
  for (let from = 0; from < OPS; from += BATCH) {
    const requests = Array.from({ length: Math.min(BATCH, OPS - from) }, (_, nth) => {
      const agent = from + nth < OPS - WATCHED_OPS ? AGENT : WATCHED;
      return {
        agent,
        credentialToken: CREDENTIAL + agent.agentId,
        traceId: `round-${round}`,
        spanId: String(from + nth),
        action: 'tool.call',
        resource: 'web_search',
      };
    });
    await post('/svc.governance.v1.PolicyService/BatchCheckActions', { requests });
  }
}

/** Counts the signals that the watched agent gets. */
function listen() {
  const listener = { count: 0, lastAtMs: 0, close: () => feed.close() };
  const feed = openControlFeed(gateway.grpc, WATCHED, CREDENTIAL + WATCHED.agentId, () => {
    listener.count += 1;
    listener.lastAtMs = performance.now();
  });
  return listener;
}

async function post(path: string, body: object): Promise<any> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
