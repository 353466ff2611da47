// An MCP server without a library that does what a test tells it to: in its environment, or as the arguments of a call.
// `SCRIPT_FILE` names a JSON file that is read with every list: the tools that it offers by then.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TOOLS = ['steps', 'hang', 'crash', 'environment', 'noise', 'ask', 'cancelled', 'large', 'people'].map((name) => ({
  name,
  description: `does ${name}`,
  inputSchema: { type: 'object' },
}));
const cancelled = [];
const hanging = new Map();
let asked = 0;
const waiting = new Map();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (id, said) => send({ id, result: { content: [{ type: 'text', text: said }] } });
const tools = () => (process.env.SCRIPT_FILE ? JSON.parse(readFileSync(process.env.SCRIPT_FILE, 'utf8')) : TOOLS);

const CALLS = {
  steps: (id, _args, token) => {
    send({ method: 'notifications/progress', params: { progressToken: token, progress: 1, total: 2 } });
    text(id, 'done');
  },
  hang: (id, _args, token) => {
    hanging.set(id, token);
    send({ method: 'notifications/progress', params: { progressToken: token, progress: 1 } });
  },
  crash: () => process.exit(3),
  environment: (id) => text(id, Object.keys(process.env).sort().join(' ')),
  noise: (id) => {
    process.stdout.write('this is not JSON\n');
    text(id, 'after the noise');
  },
  ask: (id) => {
    asked += 1;
    waiting.set(`q${asked}`, (answer) => text(id, JSON.stringify(answer.result ?? answer.error)));
    send({ id: `q${asked}`, method: 'roots/list' });
  },
  cancelled: (id) => text(id, JSON.stringify(cancelled)),
  wrong: (id) => send({ id, result: 'no object' }),
  large: (id) => text(id, 'x'.repeat(3_000_000)),
  people: (id) => {
    const people = { people: [{ name: 'Ann', email: 'ann@example.com' }], total: 120 };
    send({ id, result: { content: [{ type: 'text', text: JSON.stringify(people) }], structuredContent: people } });
  },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === 'initialize')
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true }, tasks: {} },
        serverInfo: { name: 'scripted', version: '1' },
      },
    });
  else if (method === 'tools/list') send({ id, result: { tools: tools() } });
  else if (method === 'tools/call') {
    const call = CALLS[params.name];
    if (call === undefined) text(id, `called ${params.name} with ${JSON.stringify(params.arguments ?? {})}`);
    else call(id, params.arguments, params._meta?.progressToken);
  } else if (method === 'notifications/cancelled') {
    cancelled.push(params.reason);
    // A server that answers all the same, as some do.
    if (hanging.has(params.requestId)) text(params.requestId, 'too late');
  } else if (method === undefined) waiting.get(id)?.({ result, error });
  else if (id !== undefined) send({ id, error: { code: -32601, message: `no ${method}` } });
});
