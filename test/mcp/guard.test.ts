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
  - { id: weather, actions: [mcp.call], resources: [every/get-structured-content], effect: allow, obligations: [{ id: hot, type: redact, paths: [result.structuredContent.conditions] }, { id: place, type: set, path: location, value: Chicago }] }
  - { id: ask, actions: [mcp.call], resources: [every/get-structured-content], when: attributes.location == "New York", effect: require_approval }
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
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'echo',
      'get-structured-content',
      'get-sum',
      'trigger-long-running-operation',
    ]);
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

  test('meets obligations on arguments and result, also after an approval', async () => {
    const { client, close } = await guarded(world);
    const call = (location: string) => client.callTool({ name: 'get-structured-content', arguments: { location } });
    const edited = async (location: string): Promise<void> => {
      const result = await call(location);
      // That of Chicago, which is set, in place of the city that the agent names.
      const weather = { temperature: 36, conditions: '[redacted]', humidity: 82 };
      expect(result.structuredContent).toEqual(weather);
      expect(JSON.parse(textOf(result))).toEqual(weather);
    };
    await edited('Los Angeles');
    const held = edited('New York');
    const pending = async () => (await world.gateway.call('GET', '/api/v1/approvals?state=pending')).body.approvals;
    await expect.poll(pending).toMatchObject([{ resource: 'every/get-structured-content', rule_id: 'ask' }]);
    const [{ id }] = await pending();
    await world.gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'fine' });
    await held;
    const [entry] = await world.logs('event_type=ActionAllowed&per_page=1');
    expect(entry.payload).toMatchObject({ obligations: ['hot', 'place'], attributes: { location: 'New York' } });
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
