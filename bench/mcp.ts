/** How long a call of an MCP tool takes behind `svc mcp guard`, next to the same call without it? Goal: 2 ms more. */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { endingOf, scratchFolder } from './lib/ending.ts';
import { environmentFrom } from './lib/environment.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, percentile } from './lib/report.ts';
import { AGENT, startGateway, TOKEN } from './lib/subject.ts';

const CALLS = isBrief ? 50 : 3_000;
const WARM_UP = isBrief ? 10 : 1_000;

const POLICY = `
name: bench
scope: global
rules:
  - { id: echo, actions: [mcp.call], resources: [server/echo], when: size(attributes.message) < 100, effect: allow }
`;

/** Answers at once, so that what is measured is what stands before it. */
const SERVER = `
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {} });
  else if (method === 'tools/list')
    send(id, { tools: Array.from({ length: 20 }, (_, n) => ({ name: n === 0 ? 'echo' : 'tool' + n, description: 'x'.repeat(400), inputSchema: { type: 'object' } })) });
  else if (id !== undefined) send(id, { content: [{ type: 'text', text: params.arguments.message }] });
});
`;
const COMMAND = [process.execPath, '-e', SERVER];

type Caller = { call(): Promise<void>; stop(): Promise<void> };

async function callerOf(child: ChildProcess, folder?: string): Promise<Caller> {
  const stop = endingOf(child, folder);
  let answered: (() => void) | undefined;
  createInterface({ input: child.stdout! }).on('line', (text) => {
    if (!text.includes('"isError":true')) return answered?.();
    throw new Error(text);
  });
  let id = 0;
  const ask = (method: string, params: object): Promise<void> =>
    new Promise((resolve) => {
      answered = resolve;
      id += 1;
      child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'b', version: '1' } });
  return { call: () => ask('tools/call', { name: 'echo', arguments: { message: 'hello' } }), stop };
}

/** Times one call after the other, as an agent makes them. */
async function timesOf({ call }: Caller): Promise<readonly number[]> {
  for (let n = 0; n < WARM_UP; n += 1) await call();
  const times: number[] = [];
  for (let n = 0; n < CALLS; n += 1) {
    const startedMs = performance.now();
    await call();
    times.push(performance.now() - startedMs);
  }
  return times.sort((a, b) => a - b);
}

heading('A call of an MCP tool over pipes, without and with svc mcp guard');
const folder = scratchFolder();
const policy = join(folder, 'policy.yaml');
writeFileSync(policy, POLICY);
const gateway = await startGateway({ SVC_POLICY_PATH: policy });
const [file = '', ...args] = COMMAND;
const bare = await callerOf(spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] }));
const guarded = await callerOf(
  spawn(
    process.execPath,
    [join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js'), 'mcp', 'guard', '--server', 'server', '--', ...COMMAND],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        ...environmentFrom(process.env),
        SVC_GATEWAY_URL: gateway.url,
        SVC_GATEWAY_GRPC: gateway.grpc,
        SVC_AGENT: `${AGENT.orgId}/${AGENT.teamId}/${AGENT.agentId}`,
        SVC_AGENT_TOKEN: TOKEN,
        SVC_MCP_PINS: join(folder, 'pins.json'),
      },
    },
  ),
  folder,
);
const without = await timesOf(bare);
const behind = await timesOf(guarded);
for (const percent of [50, 99]) {
  line(`without, p${percent}`, percentile(without, percent), 'ms');
  line(`behind the guard, p${percent}`, percentile(behind, percent), 'ms');
}
line('added, p50', percentile(behind, 50) - percentile(without, 50), 'ms', 'goal: 2');
await bare.stop();
await guarded.stop();
await gateway.stop();
