/**
 * OPA's Data API against the real command. A client takes `{}` and a null result for "no opinion", and runs the tool.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { ADMIN_KEY } from '../../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../../support/gateway-here.ts';
import { policyFile } from '../../support/policies.ts';

const POLICIES = `
name: tools
scope: global
rules:
  - id: small
    actions: [tool.call]
    resources: [web_search]
    when: attributes.size < 10
    effect: allow
    reason: small searches
  - { id: no-drop, actions: [tool.call], resources: [drop_all], effect: deny, remedy: ask a person to drop it }
  - { id: files, actions: [file.read], resources: ["/tmp/*"], effect: allow, reason: scratch files }
`;

let gateway: GatewayHere;
let agent: DoorAgent;
beforeAll(async () => {
  const { path } = policyFile(POLICIES, afterAll);
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path } });
  agent = await registerAgent(gateway, 'acme/chat/assistant');
});
afterAll(async () => void (await gateway?.stop()));

/** As the client of the AI SDK sends it, down to its empty cookie. */
async function decide(
  body: unknown,
  bearer: string | null = agent.token,
  headers: Record<string, string> = {},
  query = '',
) {
  const response = await fetch(`${gateway.url}/v1/data/svc/authz/decision${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      cookie: '',
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as any };
}
const toolCall = (name: string, args: object) => ({
  input: { tool: { name }, args, messages: [{ role: 'user', content: 'my password is hunter2' }], runtimeContext: {} },
});

describe('the OPA Data API', () => {
  test("decides about a tool's call by its name and arguments", async () => {
    expect(await decide(toolCall('web_search', { size: 1 }))).toEqual({
      status: 200,
      body: {
        result: {
          decision: 'allow',
          reason: 'small searches (rule small of policy tools)',
          cause: null,
          policy: 'tools',
          rule_id: 'small',
          audit_id: expect.any(Number),
          op_id: null,
        },
      },
    });
    const [entry] = await newestEntries(gateway, 1);
    expect(entry.payload).toMatchObject({ action: 'tool.call', resource: 'web_search', attributes: { size: 1 } });
    expect(JSON.stringify(entry)).not.toContain('hunter2');
  });

  test('denies with a reason', async () => {
    for (const body of [toolCall('web_search', { size: 99 }), toolCall('delete_all', {}), toolCall('web_search', {})])
      expect(await decide(body)).toMatchObject({ status: 200, body: { result: { decision: 'deny' } } });
  });

  test('says what may be done instead, in the answer and in the record', async () => {
    const remedy = 'ask a person to drop it';
    expect((await decide(toolCall('drop_all', {}))).body.result).toMatchObject({ decision: 'deny', remedy });
    expect((await newestEntries(gateway, 1))[0]?.payload).toMatchObject({ remedy });
  });

  test('decides about any other action, and begins an operation that is named', async () => {
    const input = { action: 'file.read', resource: '/tmp/x', attributes: { size: 3 } };
    expect((await decide({ input })).body.result).toMatchObject({ decision: 'allow', op_id: null });
    const named = { ...input, trace_id: 'opa', span_id: '1' };
    expect((await decide({ input: named })).body.result).toMatchObject({ decision: 'allow', op_id: 'opa:1' });
    expect((await gateway.call('GET', '/api/v1/ops/opa:1')).body.state).toBe('running');
  });

  test.each([
    ['no input', {}],
    ['a null input', { input: null }],
    ['an empty input', { input: {} }],
    ['a tool without a name', { input: { tool: {} } }],
    ['arguments that are text', { input: { tool: { name: 'web_search' }, args: 'x' } }],
    ['a tool and an action', { input: { tool: { name: 'web_search' }, action: 'tool.call' } }],
    ['an empty action', { input: { action: '' } }],
    ['one half of an operation', { input: { action: 'file.read', trace_id: 't' } }],
    ['no body', ''],
    ['half a body', '{"input":'],
    ['a parameter of the query', toolCall('web_search', { size: 1 }), '?pretty=true'],
  ])("%s is OPA's own error, on record, and never an empty result", async (_name, body, query = '') => {
    const before = (await newestEntries(gateway, 1))[0].id;
    const answer = await decide(body, agent.token, {}, query);
    expect(answer).toEqual({ status: 400, body: { code: 'invalid_parameter', message: expect.any(String) } });
    const [entry] = await newestEntries(gateway, 1);
    expect({ id: entry.id, decision: entry.decision }).toEqual({ id: before + 1, decision: 'deny' });
  });

  test('records as much of a refused request as can be read', async () => {
    for (const [input, payload] of [
      [
        { tool: { name: 'web_search' }, args: 'x' },
        { action: 'tool.call', resource: 'web_search' },
      ],
      [
        { action: 'file.read', resource: '/a', attributes: [] },
        { action: 'file.read', resource: '/a' },
      ],
      [
        { action: 'file.read', resource: 7 },
        { action: 'file.read', resource: '' },
      ],
    ]) {
      expect((await decide({ input })).status).toBe(400);
      expect((await newestEntries(gateway, 1))[0].payload).toEqual(payload);
    }
  });

  test('without a known bearer the answer is 401', async () => {
    for (const bearer of [null, 'nonsense'])
      expect(await decide(toolCall('web_search', { size: 1 }), bearer)).toEqual({
        status: 401,
        body: { code: 'unauthorized', message: expect.any(String) },
      });
  });

  test('a key must say for which agent it asks', async () => {
    const body = toolCall('web_search', { size: 1 });
    const without = await decide(body, ADMIN_KEY);
    expect(without.body.result).toMatchObject({ decision: 'deny', cause: 'credential' });
    const malformed = await decide(body, ADMIN_KEY, { 'x-svc-agent': 'assistant' });
    expect(malformed.body.result).toMatchObject({ decision: 'deny', cause: 'credential' });
    const named = await decide(body, ADMIN_KEY, { 'x-svc-agent': agent.name });
    expect(named.body.result.decision).toBe('allow');
  });

  test('another path of OPA is no decision', async () => {
    const response = await fetch(`${gateway.url}/v1/data/other`, { method: 'POST', body: '{}' });
    expect(response.status).toBe(404);
  });
});
