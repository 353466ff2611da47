/** `svc mcp guard` on its pipes: what it says, what it keeps to itself, and how it ends. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { startWorld, textOf, type World } from './harness.ts';
import { type BareGuard, bareGuard, HELLO } from './messages.ts';

describe.concurrent('svc mcp guard on its pipes', () => {
  let world: World;
  const guards: BareGuard[] = [];
  const start = (env: Record<string, string> = {}): BareGuard => {
    const guard = bareGuard(world, env);
    guards.push(guard);
    return guard;
  };
  beforeAll(async () => {
    world = await startWorld(ALLOW_ALL);
  });
  afterAll(async () => {
    for (const { child } of guards) child.kill('SIGKILL');
    await world.close();
  });
  const opOf = async (tool: string): Promise<any> => {
    const entries = await world.logs('event_type=ActionAllowed&per_page=200');
    const { op_id: id } = entries.find(({ payload }) => payload.resource === `every/${tool}` && !payload.dry_run) ?? {};
    return (await world.gateway.call('GET', `/api/v1/ops/${encodeURIComponent(id)}`)).body;
  };

  test('keeps noise of the server, and its own credentials, to itself', async () => {
    const guard = start({ SVC_ANYTHING: 'x', OTHER: 'y' });
    await guard.ask(1, 'initialize', HELLO);
    await guard.ask(2, 'tools/call', { name: 'noise' });
    const seen = textOf((await guard.ask(3, 'tools/call', { name: 'environment' })).result).split(' ');
    expect(seen).toContain('OTHER');
    expect(seen.filter((name) => name.startsWith('SVC_'))).toEqual([]);
    for (const line of guard.lines) expect(JSON.parse(line).jsonrpc).toBe('2.0');
    expect(guard.stderr()).toContain('a line that is not JSON');
    guard.child.stdin?.end();
    expect(await guard.ended).toBe(0);
  });

  test('says at once that its credential is not known, and nothing at its end', async () => {
    const guard = start({ SVC_AGENT_TOKEN: 'x'.repeat(40) });
    await eventually(() => expect(guard.stderr()).toContain('every call is denied until this is fixed: '));
    guard.child.stdin?.end();
    expect(await guard.ended).toBe(0);
    expect(guard.stderr()).toMatch(/^svc mcp guard: every call is denied until this is fixed: [^\n]*token[^\n]*\n$/);
  });

  test('answers nonsense with errors, and passes on no method that it cannot check', async () => {
    const guard = start();
    guard.send('{"half":');
    guard.send('[1,2]');
    expect((await guard.until(({ id }) => id === null)).error.code).toBe(-32700);
    expect((await guard.until(({ id, error }) => id === null && error.code !== -32700)).error.code).toBe(-32600);
    expect((await guard.ask(9, 'ping', [])).error.code).toBe(-32600);
    const hello = await guard.ask(1, 'initialize', HELLO);
    expect(hello.result.capabilities).toEqual({ tools: { listChanged: true } });
    expect((await guard.ask(2, 'tasks/list')).error.code).toBe(-32601);
    expect((await guard.ask(3, 'tools/call', { name: 7 })).error.code).toBe(-32602);
    expect((await guard.ask(4, 'tools/call', { name: 'x', arguments: [] })).error.code).toBe(-32602);
    expect((await guard.ask(6, 'tools/call', [7])).error.code).toBe(-32600);
    const tooLong = await guard.ask(7, 'tools/call', { name: `long${'x'.repeat(2_048)}`, arguments: {} });
    expect(textOf(tooLong.result)).toContain('Denied: resource: ');
    // Each of those by which it could have acted is on record, once.
    const why = "refused on the agent's side:";
    const denied = async (): Promise<readonly string[]> =>
      (await world.logs('event_type=ActionDenied&per_page=200')).map(
        ({ lineage, payload, reason }) => `${lineage.agent_id} ${payload.resource.slice(0, 12)} ${reason.slice(0, 56)}`,
      );
    await eventually(async () =>
      expect([...(await denied())].sort()).toEqual([
        `bot every/ ${why} a line that is not a JSON-R`,
        `bot every/ ${why} params.name must be a non-e`,
        `bot every/longxx ${why} resource: must be at most 2`,
        `bot every/x ${why} params.arguments must be an`,
      ]),
    );
    expect((await guard.ask(5, 'ping')).result).toEqual({});
  });

  test('answers a call without a result with an error', async () => {
    const guard = start();
    await guard.ask(1, 'initialize', HELLO);
    const { error } = await guard.ask(2, 'tools/call', { name: 'wrong' });
    expect(error.message).toBe('the MCP server node answered with a line that is not a JSON-RPC message');
  });

  test('answers what was open when the server crashes, and says how it ended', async () => {
    const guard = start();
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 2, method: 'tools/call', params: { name: 'hang' } });
    const crashed = await guard.ask(3, 'tools/call', { name: 'crash' });
    expect(crashed.error.message).toContain('it exited with status 3');
    expect((await guard.until(({ id }) => id === 2)).error.message).toContain('it exited with status 3');
    expect(await guard.ended).toBe(1);
    expect(guard.stderr()).toContain('has ended: it exited with status 3');
    await eventually(async () => expect((await opOf('crash')).state).toBe('completing'));
  });

  test('forwards a cancellation under the id of the server, and answers nothing after it', async () => {
    const guard = start();
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 'mine', method: 'tools/call', params: { name: 'hang', _meta: { progressToken: 'p' } } });
    expect(await guard.until(({ method }) => method === 'notifications/progress')).toMatchObject({
      params: { progressToken: 'p', progress: 1 },
    });
    guard.send({ method: 'notifications/cancelled', params: { requestId: 'mine', reason: 'changed my mind' } });
    const answer = await guard.ask(2, 'tools/call', { name: 'cancelled' });
    expect(textOf(answer.result)).toBe('["the client has cancelled the request"]');
    expect(guard.lines.some((line) => JSON.parse(line).id === 'mine')).toBe(false);
    await eventually(async () => expect((await opOf('hang')).state).toBe('completing'));
  });

  test('passes questions of the server to the client, and its answers back', async () => {
    const guard = start();
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 2, method: 'tools/call', params: { name: 'ask' } });
    const question = await guard.until(({ method }) => method === 'roots/list');
    guard.send({ id: question.id, result: { roots: [{ uri: 'file:///x' }] } });
    const answer = await guard.until(({ id, method }) => id === 2 && method === undefined);
    expect(textOf(answer.result)).toBe('{"roots":[{"uri":"file:///x"}]}');
  });

  test('ends what runs, and the server, when its input ends', async () => {
    const guard = start();
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 2, method: 'tools/call', params: { name: 'steps', _meta: { progressToken: 1 } } });
    await guard.until(({ id }) => id === 2);
    guard.send({ id: 3, method: 'tools/call', params: { name: 'large' } });
    expect(textOf((await guard.until(({ id }) => id === 3)).result)).toHaveLength(3_000_000);
    guard.child.stdin?.end();
    expect(await guard.ended).toBe(0);
    await eventually(async () => expect((await opOf('large')).state).toBe('completing'));
  });

  test('denies every call, and lists nothing, while the gateway cannot be reached', async () => {
    const guard = start({ SVC_GATEWAY_URL: 'http://127.0.0.1:9', SVC_GATEWAY_GRPC: '127.0.0.1:9' });
    await guard.ask(1, 'initialize', HELLO);
    const denied = (await guard.ask(2, 'tools/call', { name: 'steps' })).result;
    expect(denied.isError).toBe(true);
    expect(textOf(denied)).toContain('the gateway at http://127.0.0.1:9 cannot be reached: the connection was refused');
    expect((await guard.ask(3, 'tools/list')).error.message).toContain('cannot be reached');
  });

  test('denies every call of an agent whose token is another one', async () => {
    const guard = start({ SVC_AGENT: 'acme/mcp/other' });
    await guard.ask(1, 'initialize', HELLO);
    const denied = (await guard.ask(2, 'tools/call', { name: 'steps' })).result;
    expect(textOf(denied)).toContain('registered to a different agent');
    expect((await world.logs('event_type=A2AImpersonationAttempted')).length).toBeGreaterThan(0);
  });
});
