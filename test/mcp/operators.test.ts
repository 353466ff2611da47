/** Operators' signals to calls that run behind `svc mcp guard`, over pushed signals and without them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { startWorld, textOf, type World } from './harness.ts';
import { bareGuard, HELLO } from './messages.ts';

describe('an operator', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(ALLOW_ALL);
  });
  afterAll(() => world.close());

  const running = async (): Promise<string> =>
    eventually(async () => {
      const { body } = await world.gateway.call('GET', '/api/v1/ops?state=running');
      expect(body.ops).toHaveLength(1);
      return encodeURIComponent(body.ops[0].op_id);
    });

  test.each([
    ['pushed', {}],
    ['asked for', { SVC_GATEWAY_GRPC: '127.0.0.1:9' }],
  ])('terminates a call: the server is told, the agent answered (signals %s)', async (_, env) => {
    const guard = bareGuard(world, env);
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 2, method: 'tools/call', params: { name: 'hang', _meta: { progressToken: 'p' } } });
    await guard.until(({ method }) => method === 'notifications/progress'); // the server has it
    const id = await running();
    await world.gateway.call('POST', `/api/v1/ops/${id}/terminate`);
    const ended = await guard.until((message) => message.id === 2);
    expect(ended.result.isError).toBe(true);
    expect(textOf(ended.result)).toContain('an operator has terminated this call');
    const answer = await guard.ask(3, 'tools/call', { name: 'cancelled' });
    expect(textOf(answer.result)).toBe('["an operator has terminated this call"]');
    guard.child.stdin?.end();
    await guard.ended;
  });

  test.each([
    ['pushed', {}],
    ['asked for', { SVC_GATEWAY_GRPC: '127.0.0.1:9' }],
  ])('pauses a call: its result is held until it is resumed (signals %s)', async (_, env) => {
    const guard = bareGuard(world, env);
    await guard.ask(1, 'initialize', HELLO);
    guard.send({ id: 2, method: 'tools/call', params: { name: 'ask' } });
    const question = await guard.until(({ method }) => method === 'roots/list');
    const id = await running();
    expect((await world.gateway.call('POST', `/api/v1/ops/${id}/pause`)).status).toBe(200);
    guard.send({ id: question.id, result: { roots: [] } });
    // Others are not held up: by their answers, the paused call had its time.
    for (let n = 10; n < 13; n += 1) await guard.ask(n, 'tools/call', { name: 'steps' });
    expect(guard.lines.some((line) => JSON.parse(line).id === 2)).toBe(false);
    await world.gateway.call('POST', `/api/v1/ops/${id}/resume`);
    expect(textOf((await guard.until((message) => message.id === 2)).result)).toBe('{"roots":[]}');
    guard.child.stdin?.end();
    await guard.ended;
  });
});
