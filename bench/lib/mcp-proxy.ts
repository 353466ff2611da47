/** `svc mcp proxy` before a server that answers at once, with one session of an agent opened. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { endingOf, scratchFolder } from './ending.ts';
import { environmentFrom } from './environment.ts';
import { type Subject, TOKEN } from './subject.ts';

const SERVER = `
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'files', version: '1' } });
  else if (method === 'tools/list') send(id, { tools: [{ name: 'read', description: 'reads', inputSchema: { type: 'object' } }] });
  else if (id !== undefined) send(id, { content: [{ type: 'text', text: 'read' }] });
});
`;

type Session = Subject & { readonly headers: Readonly<Record<string, string>> };

/** The proxy's address and process, and the headers of the session. */
export async function startMcpProxy(gateway: Subject): Promise<Session> {
  const folder = scratchFolder();
  const config = join(folder, 'mcp.yaml');
  // JSON is YAML as well.
  const upstreams = [{ name: 'files', command: [process.execPath, '-e', SERVER] }];
  writeFileSync(config, JSON.stringify({ listen: '127.0.0.1:0', upstreams }));
  const command = join(process.env.BENCH_GATEWAY ?? PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js');
  const child = spawn(process.execPath, [command, 'mcp', 'proxy', config], {
    env: {
      ...environmentFrom(process.env),
      SVC_GATEWAY_URL: gateway.url,
      SVC_GATEWAY_GRPC: gateway.grpc,
      SVC_MCP_PINS: join(folder, 'pins.json'),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stop = endingOf(child, folder);
  let output = '';
  let url: string | undefined;
  while (url === undefined) {
    const [piece] = (await Promise.race([once(child.stderr!, 'data'), once(child, 'exit')])) as [unknown];
    if (!Buffer.isBuffer(piece)) throw new Error(`svc mcp proxy does not start: ${output}`);
    output += piece.toString();
    url = /at (http:\S+)\/mcp,/.exec(output)?.[1];
  }
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${TOKEN}`,
  };
  const ask = (body: object, more: object = {}): Promise<Response> =>
    fetch(`${url}/mcp/files`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const opened = await ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const session = {
    'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
    'mcp-protocol-version': '2025-11-25',
  };
  await opened.text();
  await ask({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  return { url, grpc: '', pid: child.pid ?? 0, stop, headers: { ...headers, ...session } };
}
