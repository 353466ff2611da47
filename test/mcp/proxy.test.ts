/** `svc mcp proxy` over real sockets: official clients, official servers behind it, and strangers before it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { endIfOrphaned } from '../support/orphans.ts';
import { AGENT, EVERYTHING, type Proxy, SCRIPTED, startProxy, startWorld, textOf, type World } from './harness.ts';
import { HELLO } from './messages.ts';

const POLICY = `
name: mcp
scope: global
rules:
  - id: most
    actions: ["mcp.*"]
    resources: ["every/*", "script/*", "moved/*", "remote/*"]
    effect: allow
  - { id: env, actions: [mcp.call], resources: ["*/get-env", "*/environment"], effect: deny, reason: secrets stay }
`;

describe('svc mcp proxy', () => {
  let world: World;
  let proxy: Proxy;
  let remote: ChildProcess;
  let redirecting: Server;
  /** Requests to the server that redirects. */
  const redirected: IncomingHttpHeaders[] = [];

  beforeAll(async () => {
    world = await startWorld(POLICY);
    const port = await freePort();
    remote = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
      env: { PATH: process.env.PATH ?? '', PORT: String(port) },
      stdio: 'ignore',
    });
    endIfOrphaned(remote);
    await eventually(() => fetch(`http://127.0.0.1:${port}/mcp`));
    redirecting = createServer((request, response) => {
      redirected.push(request.headers);
      response.writeHead(307, { location: `http://127.0.0.1:${port}/mcp` }).end();
    });
    await new Promise<void>((resolve) => {
      redirecting.listen(0, '127.0.0.1', resolve);
    });
    const moved = (redirecting.address() as AddressInfo).port;
    proxy = await startProxy(
      world,
      `listen: 127.0.0.1:0
upstreams:
  - { name: every, command: ["${process.execPath}", "${EVERYTHING}", stdio] }
  - { name: script, command: ["${process.execPath}", "${SCRIPTED}"] }
  - { name: remote, url: "http://127.0.0.1:${port}/mcp" }
  - { name: moved, url: "http://127.0.0.1:${moved}/mcp", headers: { authorization: "Bearer \${UPSTREAM_KEY}" } }
`,
    );
  });
  afterAll(async () => {
    await proxy?.stop();
    remote?.kill('SIGKILL');
    redirecting?.close();
    await world.close();
  });

  const headersOf = (secret = world.token, agent = AGENT) => ({
    authorization: `Bearer ${secret}`,
    'x-svc-agent': agent,
  });
  const alone = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` });
  const connect = async (path: string, headers: Record<string, string> = headersOf()): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(proxy.url + path), { requestInit: { headers } }) as never,
    );
    return client;
  };
  const post = (path: string, headers: Record<string, string>, body: unknown = hello): Promise<Response> =>
    fetch(proxy.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO };

  test('serves one server with its names, over pipes and over HTTP', async () => {
    for (const path of ['/mcp/every', '/mcp/remote']) {
      const client = await connect(path);
      const names = (await client.listTools()).tools.map(({ name }) => name);
      expect(names).toContain('echo');
      expect(names).not.toContain('get-env');
      expect(textOf(await client.callTool({ name: 'echo', arguments: { message: path } }))).toBe(`Echo: ${path}`);
      expect(textOf(await client.callTool({ name: 'get-env', arguments: {} }))).toContain('secrets stay');
      await client.close();
    }
  });

  test('serves all servers at one address, and leaves out one that fails', async () => {
    const client = await connect('/mcp');
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['every__echo', 'script__steps', 'remote__get-sum']));
    expect(names.filter((name) => /env|environment|moved__/.test(name))).toEqual([]);
    const sum = await client.callTool({ name: 'remote__get-sum', arguments: { a: 2, b: 3 } });
    expect(textOf(sum)).toContain('5');
    await expect(client.callTool({ name: 'echo', arguments: { message: 'x' } })).rejects.toThrow('<server>__<tool>');
    await expect
      .poll(() => world.logs('event_type=ActionDenied&per_page=1'))
      .toMatchObject([{ reason: expect.stringContaining('<server>__<tool>'), payload: { resource: 'echo' } }]);
    const { resources } = await client.listResources();
    expect(resources.length).toBeGreaterThan(0);
    await client.close();
  });

  test('follows no redirect, and shows nobody what its servers are called with', async () => {
    const before = redirected.length;
    const answer = await (await post('/mcp/moved', headersOf())).text();
    expect(answer).toContain('it answers with a redirect, which is not followed');
    expect(answer + proxy.stderr()).not.toContain('upstream-s3cret');
    const [sent] = redirected.slice(before);
    expect(sent?.authorization).toBe('Bearer upstream-s3cret');
    expect(JSON.stringify(sent)).not.toContain(world.token);
    expect(sent).not.toHaveProperty('x-svc-agent');
  });

  test('passes progress on, and a cancellation to the server', async () => {
    const client = await connect('/mcp/script');
    const seen: number[] = [];
    await client.callTool({ name: 'steps', arguments: {} }, undefined, {
      onprogress: ({ progress }) => void seen.push(progress),
    });
    expect(seen).toEqual([1]);
    const stop = new AbortController();
    const hanging = client.callTool({ name: 'hang', arguments: {} }, undefined, {
      signal: stop.signal,
      onprogress: () => stop.abort('enough'),
    });
    await expect(hanging).rejects.toThrow();
    const answer = await client.callTool({ name: 'cancelled', arguments: {} });
    expect(textOf(answer)).toBe('["the client has cancelled the request"]');
    await client.close();
  });

  test('asks for a credential, and says where it is described', async () => {
    const refused = await post('/mcp/every', {});
    expect(refused.status).toBe(401);
    const metadata = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1] ?? '';
    expect(metadata).toBe(`${proxy.url}/.well-known/oauth-protected-resource/mcp/every`);
    expect(await (await fetch(metadata)).json()).toMatchObject({
      resource: `${proxy.url}/mcp/every`,
      bearer_methods_supported: ['header'],
    });
    expect((await fetch(`${proxy.url}/.well-known/oauth-protected-resource/mcp/none`)).status).toBe(404);
  });

  const jwt = (aud: unknown): string =>
    ['{"alg":"EdDSA"}', JSON.stringify({ aud }), 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.');

  test.each([
    ['an unknown token', 'no-such-token-0123456789-0123456789', 401],
    ['a forged access token', jwt('svc-gateway'), 401],
    ['an access token for somebody else', jwt('https://other.example'), 401],
  ])('refuses %s', async (_, secret, status) => {
    const refused = await post('/mcp/every', headersOf(secret));
    expect(refused.status).toBe(status);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  test('takes an API key for the agent that is named, and none without one', async () => {
    const client = await connect('/mcp/every', headersOf(ADMIN_KEY));
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'key' } }))).toBe('Echo: key');
    await client.close();
    const refused = await post('/mcp/every', alone(ADMIN_KEY));
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('x-svc-agent: <org>')]);
  });

  test("takes an agent's own token without a name, and opens a session of that agent", async () => {
    const client = await connect('/mcp/every', alone(world.token));
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'own' } }))).toBe('Echo: own');
    await client.close();
    expect(await world.logs('event_type=ActionAllowed')).toContainEqual(
      expect.objectContaining({
        lineage: { org_id: 'acme', team_id: 'mcp', agent_id: 'bot' },
        payload: expect.objectContaining({ attributes: { message: 'own' } }),
      }),
    );
    const unknown = await post('/mcp/every', alone('no-such-token-0123456789-0123456789'));
    expect(unknown.status).toBe(401);
    expect(unknown.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  test('refuses the token of another agent, and has it on record', async () => {
    const refused = await post('/mcp/every', headersOf(world.token, 'acme/mcp/other'));
    expect(refused.status).toBe(401);
    expect((await world.logs('event_type=A2AImpersonationAttempted')).length).toBeGreaterThan(0);
  });

  test('may record what it refuses for the agent of its credential, and for no other', async () => {
    const record = async (body: unknown, headers: Record<string, string>): Promise<[number, any]> => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
      const url = `${world.gateway.url}/api/v1/agents/self/refusals`;
      const answer = await fetch(url, { ...init, body: JSON.stringify(body) });
      return [answer.status, await answer.json()];
    };
    const newest = async () => (await world.logs('per_page=1'))[0];
    const refused = { action: 'mcp.call', resource: 'every/echo', reason: `it is ${'too '.repeat(1_000)}long` };
    const [status, { audit_id: id, reason }] = await record(refused, headersOf(ADMIN_KEY));
    expect([status, reason.length < 600]).toEqual([200, true]);
    expect(await newest()).toMatchObject({ id, decision: 'deny', reason, lineage: { agent_id: 'bot' } });
    expect((await record(refused, headersOf(world.token, 'acme/mcp/other')))[0]).toBe(200);
    expect(await newest()).toMatchObject({ event_type: 'A2AImpersonationAttempted', decision: 'deny' });
    expect((await record({ ...refused, decision: 'allow' }, alone(world.token)))[0]).toBe(400);
    const unread = { decision: 'deny', reason: 'decision: unknown field', lineage: { agent_id: 'bot' } };
    const last = await newest();
    expect(last).toMatchObject(unread);
    expect((await record(refused, { ...alone(world.token), 'content-type': 'text/plain' }))[0]).toBe(415);
    expect((await record(refused, alone('no-such-token-0123456789-0123456789')))[0]).toBe(401);
    expect((await newest()).id).toBe(last.id);
  });

  test('gives a session to the credential that opened it, and to nobody else', async () => {
    const opened = await post('/mcp/script', headersOf());
    const id = opened.headers.get('mcp-session-id') ?? '';
    expect(id).not.toBe('');
    await opened.body?.cancel();
    const other = await world.register('other');
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
    const stolen = { ...headersOf(other, 'acme/mcp/other'), 'mcp-session-id': id };
    for (const method of ['GET', 'DELETE'])
      expect((await fetch(`${proxy.url}/mcp/script`, { method, headers: stolen })).status, method).toBe(404);
    expect((await post('/mcp/script', stolen, list)).status).toBe(404);
    expect((await post('/mcp/every', { ...headersOf(), 'mcp-session-id': id }, list)).status).toBe(404);
    // Not under the name that it speaks for by itself either, nor with a key that may speak for all.
    expect((await post('/mcp/script', { ...alone(other), 'mcp-session-id': id }, list)).status).toBe(404);
    expect((await post('/mcp/script', { ...headersOf(ADMIN_KEY), 'mcp-session-id': id }, list)).status).toBe(404);
    const bad = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: ['steps'] };
    expect((await post('/mcp/script', { ...headersOf(), 'mcp-session-id': id }, bad)).status).toBe(400);
    await expect
      .poll(() => world.logs('event_type=ActionDenied&per_page=1'))
      .toMatchObject([{ reason: expect.stringContaining('not a JSON-RPC message'), payload: { resource: 'script/' } }]);
    for (const headers of [headersOf(), alone(world.token)]) {
      const own = await post('/mcp/script', { ...headers, 'mcp-session-id': id }, list);
      expect(own.status).toBe(200);
      await own.body?.cancel();
    }
  });

  test('refuses web pages of other origins, other paths and methods, and what is no body', async () => {
    expect((await post('/mcp/every', { ...headersOf(), origin: 'https://evil.example' })).status).toBe(403);
    expect((await post('/mcp/every', { ...headersOf(), origin: 'null' })).status).toBe(403);
    expect((await post('/mcp/none', headersOf())).status).toBe(404);
    expect((await fetch(`${proxy.url}/mcp/every`, { method: 'PUT', headers: headersOf() })).status).toBe(405);
    expect((await post('/mcp/every', headersOf(), '{"half":')).status).toBe(400);
    expect((await post('/mcp/every', { ...headersOf(), 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post('/mcp/every', headersOf(), { ...hello, method: 'tools/list' })).status).toBe(400);
  });

  test('ends by a signal, and leaves no operation running', async () => {
    const client = await connect('/mcp/script');
    const hanging = client.callTool({ name: 'hang', arguments: {} }).catch(() => 'over');
    await expect
      .poll(async () => (await world.gateway.call('GET', '/api/v1/ops?state=running')).body.ops.length)
      .toBeGreaterThan(0);
    expect(await proxy.stop()).toBe(0);
    expect((await world.gateway.call('GET', '/api/v1/ops?state=running')).body.ops).toEqual([]);
    await client.close();
    await hanging;
  });
});
