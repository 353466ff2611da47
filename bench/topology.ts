/** How long does the topology of 100,000 agents in 1,000 orgs take to ask for, and how much memory do they take? */
import { AgentRegistry } from '../src/core/agents/agents.ts';
import { agentKeyOf, type SecretDigest } from '../src/core/base/ids.ts';
import { lineages, overview, stats, tree } from '../src/core/listings/topology.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, percentile } from './lib/report.ts';

const ORGS = 1_000;
const AGENTS = isBrief ? 5_000 : 100_000;
const TEAMS_PER_ORG = 10;
const RUNS = isBrief ? 200 : 2_000;

const heapBytes = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};

heading(`The topology of ${AGENTS.toLocaleString('en')} agents in ${ORGS.toLocaleString('en')} orgs`);
const beforeBytes = heapBytes();
const agents = new AgentRegistry();
for (let n = 0; n < AGENTS; n += 1) {
  const org = n % ORGS;
  const inOrg = Math.floor(n / ORGS);
  const identity = { orgId: `org-${org}`, teamId: `team-${inOrg % TEAMS_PER_ORG}`, agentId: `agent-${n}` };
  const parent =
    inOrg < TEAMS_PER_ORG ? undefined : agentKeyOf({ ...identity, agentId: `agent-${n - TEAMS_PER_ORG * ORGS}` });
  const entry = agents.register({
    identity,
    credential: `digest-of-43-characters-${n}`.padEnd(43, 'x') as SecretDigest,
    registeredAtMs: n,
    parent,
  });
  agents.touch(entry, 1_700_000_000_000);
}
line(
  'memory of the registry',
  (heapBytes() - beforeBytes) / 1024 / 1024,
  'MiB',
  globalThis.gc === undefined ? 'run with --expose-gc' : 'goal: under 150',
);

const page = { perPage: 1_000, cursor: undefined };
const nowMs = 1_700_000_000_000;
const ops = { pending: 0, running: 0, paused: 0, completing: 0, terminated: 0 };
const QUESTIONS: readonly (readonly [string, (org: string) => unknown])[] = [
  ['overview of one org', (org) => overview(agents, { orgId: org, ...page }, nowMs)],
  ['tree of one org', (org) => tree(agents, { orgId: org, ...page })],
  ['stats of one org', (org) => stats(agents, ops, { orgId: org, ...page }, nowMs)],
  [
    'lineage of one agent',
    (org) => lineages(agents, { orgId: org, agentId: `agent-${Number(org.slice(4)) + 50_000}`, ...page }),
  ],
  ['overview of all orgs, first page', () => overview(agents, { orgId: undefined, ...page }, nowMs)],
  ['stats of all orgs, first page', () => stats(agents, ops, { orgId: undefined, ...page }, nowMs)],
];
for (const [question, ask] of QUESTIONS) {
  const tookMs = new Float64Array(RUNS);
  for (let n = 0; n < RUNS; n += 1) {
    const startedMs = performance.now();
    ask(`org-${n % ORGS}`);
    tookMs[n] = performance.now() - startedMs;
  }
  tookMs.sort();
  line(question, percentile(tookMs, 50), 'ms', `p99 ${percentile(tookMs, 99).toFixed(3)} ms`);
}
