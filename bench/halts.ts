/**
 * How long does it take to halt an org with 100,000 running operations, and how long do the checks of another org wait
 * meanwhile?
 */
import { setTimeout as sleep } from 'node:timers/promises';
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

heading(`Halting an org with ${OPS.toLocaleString('en')} running operations`);
const gateway = await startGateway();
const answered: number[] = [];
const longest: number[] = [];
const calm: number[] = [];
await post('/svc.governance.v1.AgentService/RegisterAgent', { agent: AGENT, credentialToken: CREDENTIAL });
for (let round = 0; round < ROUNDS; round += 1) {
  await begin(round);
  const load = { url: gateway.url + CHECK, body: CHECK_BODY, ...PACE };
  calm.push((await loadOpenly(load)).longest);
  const waits = loadOpenly(load);
  await sleep((PACE.seconds * 1_000) / 2);
  const sentAtMs = performance.now();
  const { halt, ops_affected } = await post('/api/v1/halts', { scope: `org:${AGENT.orgId}`, reason: 'a benchmark' });
  answered.push(performance.now() - sentAtMs);
  if (ops_affected !== OPS) throw new Error(`the halt stopped ${ops_affected} operations of ${OPS}`);
  longest.push((await waits).longest);
  await post(`/api/v1/halts/${halt.id}/release`, { reason: 'the benchmark goes on' });
}
await gateway.stop();
line('the halt is answered after', answered, 'ms', 'goal: at most 1,000');
line('longest wait of another org meanwhile', longest, 'ms', 'goal: at most 20 more than calm');
line('longest wait of another org, calm', calm, 'ms');

async function begin(round: number): Promise<void> {
  for (let from = 0; from < OPS; from += BATCH) {
    const requests = Array.from({ length: Math.min(BATCH, OPS - from) }, (_, nth) => ({
      agent: AGENT,
      credentialToken: CREDENTIAL,
      traceId: `round-${round}`,
      spanId: String(from + nth),
      action: 'tool.call',
      resource: 'web_search',
    }));
    await post('/svc.governance.v1.PolicyService/BatchCheckActions', { requests });
  }
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
