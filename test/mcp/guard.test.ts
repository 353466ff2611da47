/** `svc mcp guard` between the official client and the official server, with a real gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { guarded, startWorld, textOf, type World } from './harness.ts';

const POLICY = `
name: mcp
scope: global
rules:
  - { id: echo, actions: [mcp.call], resources: [every/echo, every/trigger-long-running-operation], effect: allow }
  - { id: sums, actions: [mcp.call], resources: [every/get-sum], when: attributes.a < 10, effect: allow }
  - { id: env, actions: [mcp.call], resources: [every/get-env], effect: deny, reason: secrets stay }
  - { id: read, actions: [mcp.read], resources: ["every/demo://resource/static/*"], effect: allow }
  - { id: prompts, actions: [mcp.prompt], resources: [every/simple-prompt], effect: allow }
`;

describe('svc mcp guard', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(POLICY);
  });
  afterAll(() => world.close());

  test('lists the tools that may be called, and those that may be with some arguments', async () => {
    const { client, close } = await guarded(world);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(['echo', 'get-sum', 'trigger-long-running-operation']);
    await close();
  });

  test('passes an allowed call on, and completes its operation without the result', async () => {
    const { client, close } = await guarded(world);
    const result = await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
    expect(textOf(result)).toBe('Echo: hello');
    const [entry] = await world.logs('event_type=ActionAllowed&per_page=1');
    expect(entry.payload).toMatchObject({
      action: 'mcp.call',
      resource: 'every/echo',
      attributes: { message: 'hello' },
    });
    await expect
      .poll(() => world.logs(`event_type=OpCompleted&op_id=${encodeURIComponent(entry.op_id)}`))
      .toHaveLength(1);
    expect(JSON.stringify(await world.logs())).not.toContain('Echo: hello');
    await close();
  });

  test('answers a denied call with a result that says why', async () => {
    const { client, close } = await guarded(world);
    const denied = await client.callTool({ name: 'get-env', arguments: {} });
    expect(denied.isError).toBe(true);
    expect(textOf(denied)).toContain('secrets stay');
    const tooLarge = await client.callTool({ name: 'get-sum', arguments: { a: 50, b: 1 } });
    expect(textOf(tooLarge)).toContain('no policy allows mcp.call on every/get-sum');
    const fine = await client.callTool({ name: 'get-sum', arguments: { a: 5, b: 1 } });
    expect(textOf(fine)).toContain('6');
    await close();
  });
});
