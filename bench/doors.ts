/**
 * How quick is each door, beside CheckAction over Connect or gRPC? The same agent, one allowed check a request, its
 * audit entry written. Doors that begin an operation get a new one for each check, as their agents ask.
 */
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { freePort } from '../test/support/free-port.ts';
import { CHECK_PATH } from './lib/answers.ts';
import { endingOf, scratchFolder } from './lib/ending.ts';
import { callOnce, hasH2load, loadCalls } from './lib/grpc-load.ts';
import { httpClient, loadHttp } from './lib/http-load.ts';
import { startMcpProxy } from './lib/mcp-proxy.ts';
import { isBrief } from './lib/options.ts';
import { field } from './lib/protobuf.ts';
import { heading, headline, line } from './lib/report.ts';
import { AGENT, CHECK_BODY, CHECK_CALL, type Subject, startGateway, TOKEN } from './lib/subject.ts';
import { usageOf } from './lib/usage.ts';

const CONNECTIONS = 64;
const SECONDS = isBrief ? 1 : 4;
const CALLS = isBrief ? 1_000 : 20_000;
const ROUNDS = isBrief ? 1 : 3;
/** Checks of one AuthZEN batch. */
const BATCH = 10;

type Door = {
  readonly name: string;
  readonly path: string;
  readonly body: unknown;
  readonly allowed: RegExp;
  /** Checks a request. */
  readonly checks?: number;
  readonly goal?: number;
};

const claude = { session_id: '<id>', cwd: '/workspace', hook_event_name: 'PreToolUse', tool_use_id: 'toolu_1' };
const subject = { type: 'agent', id: `${AGENT.orgId}/${AGENT.teamId}/${AGENT.agentId}` };
const evaluation = { action: { name: 'tool.call' }, resource: { type: 'tool', id: 'web_search' } };
const ids = { trace_id: '4bf92f3577b34da6<id>', span_id: '00f067aa0ba902b7' };
const hook = (agent: string, body: object, allowed = /^\{\}$/): Door => ({
  name: `hook of ${agent}`,
  path: `/api/v1/hooks/${agent}`,
  body,
  allowed,
  goal: 0.75,
});

const CONNECT: Door = { name: 'Connect', path: CHECK_PATH, body: CHECK_BODY, allowed: /"DECISION_ALLOW"/ };
const DOORS: readonly Door[] = [
  CONNECT,
  {
    name: 'AuthZEN',
    path: '/access/v1/evaluation',
    body: { subject, ...evaluation, context: ids },
    allowed: /"decision":true/,
    goal: 0.75,
  },
  {
    name: `AuthZEN, ${BATCH} at once`,
    path: '/access/v1/evaluations',
    body: { subject, context: ids, evaluations: Array.from({ length: BATCH }, () => evaluation) },
    allowed: /"decision":true/,
    checks: BATCH,
  },
  {
    name: 'OPA',
    path: '/v1/data/svc/authz/decision',
    body: { input: { tool: { name: 'web_search' }, args: {}, ...ids } },
    allowed: /"decision":"allow"/,
    goal: 0.75,
  },
  hook('claude-code', { ...claude, tool_name: 'Bash', tool_input: { command: 'ls' } }),
  hook('codex', { ...claude, tool_name: 'Bash', tool_input: { command: 'ls' } }),
  hook(
    'cursor',
    {
      hook_event_name: 'beforeShellExecution',
      conversation_id: '<id>',
      generation_id: 'g',
      command: 'ls',
      cwd: '/workspace',
    },
    /"allow"/,
  ),
  hook(
    'copilot',
    { sessionId: '<id>', timestamp: 1, cwd: '/workspace', toolName: 'bash', toolArgs: '{"command":"ls"}' },
    /^(?!.*deny)/,
  ),
  hook(
    'gemini',
    {
      session_id: '<id>',
      cwd: '/workspace',
      hook_event_name: 'BeforeTool',
      tool_name: 'run_shell_command',
      tool_input: { command: 'ls' },
    },
    /^(?!.*deny)/,
  ),
];

type Measured = { readonly perSecond: number; readonly p99Ms: number; readonly cpuUs: number };

async function measure(
  { url, pid }: Subject,
  { path, body, allowed, checks = 1, name }: Door,
  headers: Readonly<Record<string, string>> = {
    'content-type': 'application/json',
    ...(name === CONNECT.name ? {} : { authorization: `Bearer ${TOKEN}` }),
  },
): Promise<Measured> {
  const before = usageOf(pid).cpuUs;
  const { perSecond, p99Ms, failed } = await loadHttp({
    url: url + path,
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    connections: CONNECTIONS,
    seconds: SECONDS,
    allowed,
  });
  if (failed > 0) throw new Error(`${name}: ${failed} requests failed`);
  return {
    perSecond: perSecond * checks,
    p99Ms,
    cpuUs: (usageOf(pid).cpuUs - before) / (perSecond * checks * SECONDS),
  };
}

async function measureHttp(gateway: Subject): Promise<readonly number[]> {
  const rounds: Map<string, Measured>[] = [];
  await measure(gateway, CONNECT); // warm
  for (let round = isBrief ? 1 : 0; round <= ROUNDS; round += 1) {
    const results = new Map<string, Measured>();
    for (const door of DOORS) results.set(door.name, await measure(gateway, door));
    if (round > 0) rounds.push(results); // before that, the doors warm up
  }
  const of = (name: string, what: keyof Measured): readonly number[] =>
    rounds.map((results) => results.get(name)?.[what] ?? Number.NaN);
  const connect = { rate: of(CONNECT.name, 'perSecond'), cpu: of(CONNECT.name, 'cpuUs') };
  for (const { name, goal } of DOORS) {
    const rate = of(name, 'perSecond');
    line(name, rate, 'checks/s', `p99 ${(of(name, 'p99Ms')[0] ?? 0).toFixed(1)} ms`);
    line(`${name}: CPU`, of(name, 'cpuUs'), 'µs/check');
    if (name === CONNECT.name) continue;
    const share = rate.map((each, round) => each / (connect.rate[round] ?? Number.NaN));
    const show = name === 'AuthZEN' || name === 'OPA' || name === 'hook of claude-code' ? headline : line;
    show(`${name}: rate / of Connect`, share, '×', goal === undefined ? '' : `goal: at least ${goal}`);
  }
  return of('OPA', 'perSecond');
}

/** The proxy is a process of its own: its rate is that of two, and its own processor time is shown beside it. */
async function measureProxy(gateway: Subject): Promise<void> {
  const proxy = await startMcpProxy(gateway);
  const body = { jsonrpc: '2.0', id: '<id>', method: 'tools/call', params: { name: 'read', arguments: {} } };
  const door: Door = { name: 'svc mcp proxy', path: '/mcp/files', body, allowed: /"text":"read"/ };
  const rounds: Measured[] = [];
  for (let round = isBrief ? 1 : 0; round <= ROUNDS; round += 1) {
    const measured = await measure(proxy, door, proxy.headers);
    if (round > 0) rounds.push(measured);
  }
  await proxy.stop();
  line(
    'svc mcp proxy, before a server in Node.js',
    rounds.map(({ perSecond }) => perSecond),
    'calls/s',
    `p99 ${(rounds[0]?.p99Ms ?? 0).toFixed(1)} ms`,
  );
  line(
    'svc mcp proxy: CPU',
    rounds.map(({ cpuUs }) => cpuUs),
    'µs/call',
    'of the proxy alone',
  );
}

const header = (name: string, value: string): Buffer => Buffer.concat([field(1, name), field(2, value)]);
/** `envoy.service.auth.v3.CheckRequest`: attributes, request, http. */
const ENVOY = field(
  1,
  field(
    4,
    field(
      2,
      Buffer.concat([
        field(2, 'GET'),
        field(3, header('authorization', `Bearer ${TOKEN}`)),
        field(3, header('accept', 'application/json')),
        field(4, '/v1/items'),
        field(5, 'api.example'),
        field(6, 'https'),
      ]),
    ),
  ),
);
/** agentgateway's `McpRequest` of 1.4. */
const EXT_MCP = Buffer.concat([
  field(1, 'files'),
  field(2, 'tools/call'),
  field(4, JSON.stringify({ name: 'read', arguments: { path: '/tmp/a' } })),
  field(5, header('authorization', `Bearer ${TOKEN}`)),
]);

type GrpcDoor = { readonly name: string; readonly method: string; readonly message: Buffer; readonly goal?: number };
const CHECK: GrpcDoor = { name: 'gRPC', method: 'svc.governance.v1.PolicyService/CheckAction', message: CHECK_CALL };
const GRPC_DOORS: readonly GrpcDoor[] = [
  CHECK,
  { name: 'Envoy ext_authz', method: 'envoy.service.auth.v3.Authorization/Check', message: ENVOY, goal: 0.9 },
  { name: 'agentgateway ExtMcp', method: 'agentgateway.dev.ext_mcp.ExtMcp/CheckRequest', message: EXT_MCP },
];

async function measureGrpc({ grpc }: Subject): Promise<void> {
  if (!hasH2load) return console.log('  h2load is not installed: the doors over gRPC are not measured');
  // `Status` and `AuthorizationError` begin with the code of a refusal; a pass has none.
  for (const { name, method, message } of GRPC_DOORS) {
    const answer = await callOnce(grpc, method, message);
    if (/denied|not |no policy/i.test(answer.toString('latin1')))
      throw new Error(`${name} does not allow it: ${answer.toString('latin1')}`);
  }
  const rounds: Map<string, number>[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const results = new Map<string, number>();
    for (const { name, method, message } of GRPC_DOORS)
      results.set(
        name,
        loadCalls({ address: grpc, method, messages: [message], calls: CALLS, atOnce: CONNECTIONS / 4 }),
      );
    if (round > 0) rounds.push(results);
  }
  const of = (name: string): readonly number[] => rounds.map((results) => results.get(name) ?? Number.NaN);
  for (const { name, goal } of GRPC_DOORS) {
    line(name, of(name), 'checks/s');
    if (name === CHECK.name) continue;
    const share = of(name).map((rate, round) => rate / (of(CHECK.name)[round] ?? Number.NaN));
    line(`${name}: rate / of CheckAction over gRPC`, share, '×', goal === undefined ? '' : `goal: at least ${goal}`);
  }
}

/** The rule of the policy above, in OPA's words. */
const REGO = `package svc.authz
default decision := {"decision": "deny"}
decision := {"decision": "allow", "reason": "tools"} if { input.tool.name == "web_search" }
`;

async function measureOpa(ours: readonly number[]): Promise<void> {
  if (spawnSync('sh', ['-c', 'command -v opa']).status !== 0)
    return console.log('  opa is not on the PATH: it is not measured');
  const folder = scratchFolder();
  const [file, port] = [join(folder, 'policy.rego'), await freePort()];
  writeFileSync(file, REGO);
  const child = spawn('opa', ['run', '--server', '--log-level=error', `--addr=127.0.0.1:${port}`, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const stop = endingOf(child, folder);
  const opa = { url: `http://127.0.0.1:${port}`, grpc: '', pid: child.pid ?? 0, stop };
  for (let attempt = 0; ; attempt += 1) {
    const isUp = await fetch(`${opa.url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) break;
    if (attempt === 100) throw new Error('OPA does not start');
    await sleep(100);
  }
  const door = DOORS.find(({ name }) => name === 'OPA')!;
  const rates: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const { perSecond } = await measure(opa, door);
    if (round > 0) rates.push(perSecond);
  }
  await stop();
  line('OPA itself', rates, 'checks/s', 'it records nothing');
  const share = ours.map((rate, round) => rate / (rates[round] ?? Number.NaN));
  line('the OPA door: rate / of OPA itself', share, '×', 'goal: at least 1.5');
}

heading(`Every door beside CheckAction, ${CONNECTIONS} connections (${httpClient})`);
const gateway = await startGateway({
  SVC_POLICY_PATH: join(PACKAGE_ROOT, 'bench', 'policies', 'doors.yaml'),
  SVC_RATE_LIMIT_API: '0',
  // All doors begin operations for the same org, and nobody ends them.
  SVC_MAX_OPS: '16000000',
  SVC_MAX_ORG_OPS: '16000000',
});
const opaRates = await measureHttp(gateway);
await measureGrpc(gateway);
await measureProxy(gateway);
await gateway.stop();
await measureOpa(opaRates);
