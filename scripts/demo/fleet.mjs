// The fleet of the demo: 200 agents in three orgs, each of which asks, works, spends and ends, over and over; some are
// denied, some wait for a person, and one pretends to be another.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const ORGS = ['acme', 'globex', 'initech'];
const TEAMS = { search: 16, billing: 12, support: 18, release: 8, research: 13 };
const MAX_AGENTS = 200;

const tool = (name, attributes) => ({ action: 'tool.call', resource: name, attributes });
const model = (name, cost) => ({ action: 'llm.call', resource: name, cost });

/** The requests of a team's agents; repeated ones are made more often. */
const WORK = {
  search: [
    tool('web_search', { query: 'otters in winter' }),
    tool('web_search', { query: 'quarterly filings' }),
    tool('vector_search', { index: 'docs', k: 8 }),
    model('claude-sonnet', 0.03),
    { action: 'net.connect', resource: 'docs.internal:443' },
    { action: 'net.connect', resource: '169.254.169.254:80' },
  ],
  billing: [
    tool('query_orders', { customer: 'c-1042' }),
    tool('summarise', { ticket: 88 }),
    model('claude-haiku', 0.01),
    { action: 'payment.refund', resource: 'order/8841', attributes: { amount_usd: 24.5, currency: 'EUR' } },
    {
      action: 'payment.refund',
      resource: 'order/9120',
      attributes: { amount_usd: 480, currency: 'EUR', note: 'parcel lost' },
    },
    { action: 'payment.payout', resource: 'supplier/77', attributes: { amount_usd: 12_000 } },
  ],
  support: [
    tool('read_ticket', { ticket: 4312 }),
    tool('send_reply', { ticket: 4312, template: 'sorry' }),
    tool('summarise', { ticket: 4313 }),
    model('claude-haiku', 0.008),
    { action: 'file.read', resource: '/workspace/macros/refund.md' },
    { action: 'file.read', resource: '/workspace/.env' },
  ],
  release: [
    { action: 'process.exec', resource: 'npm test' },
    { action: 'process.exec', resource: 'git push origin release' },
    { action: 'deploy.run', resource: 'staging/web', attributes: { version: '4.2.0', replicas: 2 } },
    { action: 'deploy.run', resource: 'prod/web', attributes: { version: '4.2.0', replicas: 12, region: 'eu-west' } },
    { action: 'process.exec', resource: 'rm -rf /var/cache/build' },
  ],
  research: [
    tool('vector_search', { index: 'papers', k: 20 }),
    model('claude-opus', 0.05),
    model('claude-opus', 0.11),
    model('claude-opus-batch', 0.9),
    { action: 'file.write', resource: '/workspace/notes/summary.md' },
    { action: 'file.read', resource: '/home/lead/.ssh/id_ed25519' },
  ],
};
/** Actions that a person must decide, or a rule denies, are so much rarer. */
const RARE =
  /^(deploy\.run prod|payment\.refund order\/9120|payment\.payout|process\.exec rm|net\.connect 169|file\.read \/(workspace\/\.env|home))/;

const pick = (list) => list[Math.floor(Math.random() * list.length)];
const hex = (bytes) => randomBytes(bytes).toString('hex');

function nextWork(team) {
  const work = pick(WORK[team]);
  return RARE.test(`${work.action} ${work.resource}`) && Math.random() > 0.3 ? nextWork(team) : work;
}

/** Calls the gateway; a gateway that is stopping is no error of the fleet. */
function caller(url, adminKey) {
  return async (path, body, bearer = adminKey) => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json().catch(() => ({})) };
  };
}

const check = (call, { identity, token }, work, ids) =>
  call(
    '/svc.governance.v1.PolicyService/CheckAction',
    {
      agent: identity,
      credentialToken: token,
      ...ids,
      action: work.action,
      resource: work.resource,
      attributes: work.attributes ?? {},
      estimatedCostUsd: work.cost ?? 0,
    },
    null,
  );

/** Registers all; the first of each team is the parent of the others. */
async function register(call) {
  const agents = [];
  for (const orgId of ORGS)
    for (const [teamId, size] of Object.entries(TEAMS))
      for (let at = 1; at <= size && agents.length < MAX_AGENTS; at += 1) {
        const name = (index) => ({
          org_id: orgId,
          team_id: teamId,
          agent_id: `${teamId}-${index === 1 ? 'lead' : index}`,
        });
        const agent = name(at);
        const { body } = await call('/api/v1/agents', { agent, ...(at === 1 ? {} : { parent: name(1) }) });
        agents.push({
          identity: { orgId, teamId, agentId: agent.agent_id },
          token: body.credential_token,
          // A few do most of the work.
          restMs: 1_500 + Math.random() ** 2 * 40_000,
        });
      }
  return agents;
}

async function workOnce(call, agent, isStopped) {
  const work = nextWork(agent.identity.teamId);
  const ids = { traceId: hex(16), spanId: hex(8) };
  const asked = await check(call, agent, work, ids);
  if (asked.body.decision !== 'DECISION_ALLOW') return;
  await sleep(800 + Math.random() ** 3 * 45_000);
  if (isStopped()) return;
  const hasFailed = Math.random() < 0.04;
  await call(
    '/svc.governance.v1.AgentService/CompleteOp',
    {
      agent: agent.identity,
      credentialToken: agent.token,
      opId: `${ids.traceId}:${ids.spanId}`,
      ...(work.cost === undefined ? {} : { costUsd: Math.round(work.cost * (0.6 + Math.random() * 0.6) * 1e6) / 1e6 }),
      outcome: hasFailed ? 'OUTCOME_FAILURE' : 'OUTCOME_SUCCESS',
      ...(hasFailed ? { error: pick(['upstream timed out', 'HTTP 502 from the tool', 'the model refused']) } : {}),
    },
    null,
  );
}

/** An agent of globex asks in the name of one of acme. */
async function impersonate(call, agents) {
  const culprit = agents.find(({ identity }) => identity.orgId === 'globex' && identity.agentId === 'support-7');
  const victim = agents.find(({ identity }) => identity.orgId === 'acme' && identity.agentId === 'billing-2');
  if (culprit === undefined || victim === undefined) return;
  const work = { action: 'payment.refund', resource: 'order/1', attributes: { amount_usd: 90 } };
  await check(call, { identity: victim.identity, token: culprit.token }, work, { traceId: hex(16), spanId: hex(8) });
}

/** Somebody has decided before, so that the next request has something to be compared with. */
async function decideOne(call, agents, approverKey) {
  const agent = agents.find(({ identity }) => identity.orgId === 'acme' && identity.agentId === 'release-lead');
  const work = {
    action: 'deploy.run',
    resource: 'prod/web',
    attributes: { version: '4.1.9', replicas: 8, region: 'eu-west' },
  };
  const ids = { traceId: hex(16), spanId: hex(8) };
  const { body } = await check(call, agent, work, ids);
  if (body.approvalId === undefined) return;
  await call(`/api/v1/approvals/${body.approvalId}/approve`, { reason: 'change window, reviewed' }, approverKey);
  await check(call, agent, work, ids);
  await check(
    call,
    agent,
    { ...work, attributes: { version: '4.2.0', replicas: 12, region: 'eu-west' } },
    {
      traceId: hex(16),
      spanId: hex(8),
    },
  );
}

/** Starts the fleet; the answer stops it. */
export async function startFleet({ url, adminKey, onError }) {
  const call = caller(url, adminKey);
  let isStopping = false;
  const isStopped = () => isStopping;
  const { body: approver } = await call('/api/v1/iam/api-keys', { name: 'release desk', scopes: ['admin'] });
  const agents = await register(call);
  const attempt = (run) =>
    run().catch((error) => {
      if (!isStopping) onError(error);
    });
  const live = async (agent) => {
    await sleep(Math.random() * Math.min(agent.restMs, 6_000));
    while (!isStopping) {
      await attempt(() => workOnce(call, agent, isStopped));
      await sleep(agent.restMs * (0.5 + Math.random()));
    }
  };
  for (const agent of agents) void live(agent);
  await attempt(() => decideOne(call, agents, approver.key));
  await attempt(() => impersonate(call, agents));
  const clock = setInterval(() => void attempt(() => impersonate(call, agents)), 600_000);
  return () => {
    isStopping = true;
    clearInterval(clock);
  };
}
