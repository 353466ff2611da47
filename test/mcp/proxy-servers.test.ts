/** The servers that a real `svc mcp proxy` starts: with which environment, and how many. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALLOW_ALL } from '../support/policies.ts';
import { AGENT, type Proxy, SCRIPTED, startProxy, startWorld, type World } from './harness.ts';
import { HELLO } from './messages.ts';

describe('a server that svc mcp proxy starts', () => {
  let world: World;
  let proxy: Proxy;
  beforeAll(async () => {
    world = await startWorld(ALLOW_ALL);
    const upstream = `{ name: script, command: ["${process.execPath}", "${SCRIPTED}"], env: { OWN: "\${UPSTREAM_KEY}" } }`;
    proxy = await startProxy(world, `listen: 127.0.0.1:0\nmax_processes_per_credential: 2\nupstreams: [${upstream}]\n`);
  });
  afterAll(async () => {
    await proxy?.stop();
    await world.close();
  });

  const post = async (body: object, session?: string): Promise<{ status: number; session: string; text: string }> => {
    const answer = await fetch(`${proxy.url}/mcp/script`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${world.token}`,
        'x-svc-agent': AGENT,
        ...(session !== undefined && { 'mcp-session-id': session }),
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, session: answer.headers.get('mcp-session-id') ?? '', text: await answer.text() };
  };
  const open = () => post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO });

  test('finds no secret of the proxy in its environment, only its own', async () => {
    const { session } = await open();
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'environment', arguments: {} } };
    const { text } = await post(call, session);
    expect(text).toContain('"text":"HOME OWN PATH"');
  });

  test('is refused beyond the bound of its credential', async () => {
    expect((await open()).status).toBe(200);
    const refused = await open();
    expect(refused.status).toBe(503);
    expect(refused.text).toContain('have started 2 servers, and may have 2; end one that is not used');
  });
});
