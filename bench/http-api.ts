/**
 * How much of the rate of a bare server of the same HTTP library is left for a request of the HTTP API, with its
 * credential and the way to the main thread and back? And how many pages of the longest listing does it bear?
 */
import { httpClient, type LoadResult, loadGet } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, median } from './lib/report.ts';
import { ADMIN_KEY, type Subject, startBare, startGateway } from './lib/subject.ts';

const SECONDS = isBrief ? 1 : 4;
const ROUNDS = isBrief ? 1 : 3;
const CONNECTIONS = 64;
const OPS = 1_000;
const headers = { authorization: `Bearer ${ADMIN_KEY}` };

async function begin({ url }: Subject): Promise<void> {
  const requests = Array.from({ length: OPS }, (_, of) => ({
    agent: { orgId: 'acme', teamId: 'search', agentId: `agent-${of % 50}` },
    traceId: `trace-${of}`,
    spanId: 's',
    action: 'tool.call',
    resource: 'web_search',
  }));
  const response = await fetch(`${url}/svc.governance.v1.PolicyService/BatchCheckActions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ requests }),
  });
  const text = await response.text();
  if (response.status !== 200 || text.includes('DECISION_DENY')) throw new Error(text.slice(0, 500));
}

async function get(subject: Subject, path: string, connections = CONNECTIONS): Promise<LoadResult> {
  const result = await loadGet({ url: subject.url + path, headers, connections, seconds: SECONDS });
  if (result.failed > 0) throw new Error(`${result.failed} requests of ${path} failed`);
  return result;
}

heading(`The HTTP API against a bare server of the same HTTP library, ${CONNECTIONS} connections (${httpClient})`);
const bare = await startBare('bare-http.js');
const gateway = await startGateway({ SVC_RATE_LIMIT_API: '0' });
await begin(gateway);
const ONE = '/api/v1/ops/trace-17:s';
const ALL = `/api/v1/ops?per_page=${OPS}`;
for (const [subject, path] of [
  [bare, ONE],
  [gateway, ONE],
  [gateway, ALL],
] as const)
  await get(subject, path, path === ALL ? 8 : CONNECTIONS); // warm
const rounds: { bare: LoadResult; one: LoadResult; all: LoadResult }[] = [];
for (let round = 0; round < ROUNDS; round += 1)
  rounds.push({ bare: await get(bare, ONE), one: await get(gateway, ONE), all: await get(gateway, ALL, 8) });
await bare.stop();
await gateway.stop();

const p99 = (of: (round: (typeof rounds)[number]) => LoadResult): string =>
  `p99 ${median(rounds.map((round) => of(round).p99Ms)).toFixed(2)} ms`;
line(
  `bare ${bare.library}`,
  rounds.map((round) => round.bare.perSecond),
  'answers/s',
  p99((round) => round.bare),
);
line(
  'one operation',
  rounds.map(({ one }) => one.perSecond),
  'answers/s',
  p99(({ one }) => one),
);
line(
  `a page of ${OPS.toLocaleString('en')} operations, 8 connections`,
  rounds.map(({ all }) => all.perSecond),
  'pages/s',
  p99(({ all }) => all),
);
line(
  'one operation / bare',
  rounds.map((round) => round.one.perSecond / round.bare.perSecond),
  '×',
);
