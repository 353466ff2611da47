/** AuthZEN 1.0 against the real command: the cases of its certification, and what an attacker would send. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DoorAgent, newestEntries, registerAgent } from '../../support/door-agent.ts';
import { ADMIN_KEY } from '../../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../../support/gateway-here.ts';
import { policyFile } from '../../support/policies.ts';

/** The policy that the certification asks for. */
const POLICIES = `
name: certification
scope: global
rules:
  - id: alice
    actions: [read, write]
    resources: [record-1]
    when: >-
      attributes.subject.id == "alice" && !(attributes.action.name == "write" &&
      attributes.?resource.?properties.?status.orValue("") == "archived")
    effect: allow
    reason: her own record
  - id: bob
    actions: [read]
    resources: [record-1]
    when: attributes.subject.id == "bob"
    effect: allow
    reason: he may read
  - id: admins
    actions: [write]
    resources: [record-1]
    when: attributes.?subject.?properties.?role.orValue("") == "admin"
    effect: allow
    reason: admins change archived records
  - id: soft
    actions: [delete]
    resources: [record-1]
    when: attributes.subject.id == "alice" && attributes.?action.?properties.?soft.orValue(false)
    effect: allow
    reason: it can be undone
  - { id: searches, actions: [search], resources: ["*"], effect: allow, reason: searching is free }
`;

let gateway: GatewayHere;
let pep: DoorAgent;
beforeAll(async () => {
  const { path } = policyFile(POLICIES, afterAll);
  gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path, SVC_PUBLIC_URL: 'https://svc.example/gate/' } });
  pep = await registerAgent(gateway, 'acme/records/pep');
});
afterAll(async () => void (await gateway?.stop()));

type Sent = { readonly bearer?: string | null; readonly headers?: Readonly<Record<string, string>> };

async function post(path: string, body: unknown, { bearer = pep.token, headers = {} }: Sent = {}) {
  const response = await fetch(`${gateway.url}/access/v1/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

const user = (id: string, properties?: object) => ({ type: 'user', id, ...(properties && { properties }) });
const record = (properties?: object) => ({ type: 'record', id: 'record-1', ...(properties && { properties }) });
const action = (name: string, properties?: object) => ({ name, ...(properties && { properties }) });
const ask = (subject: object, act: object, resource: object = record()) => ({ subject, action: act, resource });
const READ = ask(user('alice'), action('read'));

describe('certification, basic', () => {
  test.each([
    ['alice reads', READ, true],
    ['alice writes', ask(user('alice'), action('write')), true],
    ['bob reads', ask(user('bob'), action('read')), true],
    ['bob writes', ask(user('bob'), action('write')), false],
    ['alice writes what is archived', ask(user('alice'), action('write'), record({ status: 'archived' })), false],
    [
      'an admin writes it',
      ask(user('carol', { role: 'admin' }), action('write'), record({ status: 'archived' })),
      true,
    ],
    ['alice deletes softly', ask(user('alice'), action('delete', { soft: true })), true],
    ['alice deletes for good', ask(user('alice'), action('delete', { soft: false })), false],
    ['an unknown member is ignored', { ...READ, future: 1, subject: { ...user('alice'), future: {} } }, true],
  ])('%s', async (_name, body, decision) => {
    const answer = await post('evaluation', body);
    expect({ status: answer.status, decision: answer.body.decision }).toEqual({ status: 200, decision });
    expect(answer.headers.get('content-type')).toBe('application/json');
  });

  test.each([
    ['subject', { ...READ, subject: undefined }, 'subject'],
    ['action', { ...READ, action: undefined }, 'action'],
    ['resource', { ...READ, resource: undefined }, 'resource'],
    ['subject.type', { ...READ, subject: { id: 'alice' } }, 'subject.type'],
    ['subject.id', { ...READ, subject: { type: 'user' } }, 'subject.id'],
    ['action.name', { ...READ, action: {} }, 'action.name'],
    ['resource.type', { ...READ, resource: { id: 'record-1' } }, 'resource.type'],
    ['resource.id', { ...READ, resource: { type: 'record' } }, 'resource.id'],
    ['a subject that is a string', { ...READ, subject: 'alice' }, 'subject'],
    ['a number for a name', { ...READ, action: { name: 1 } }, 'action.name'],
    ['a list for the context', { ...READ, context: [] }, 'context'],
    ['properties that are text', { ...READ, resource: { ...record(), properties: 'x' } }, 'resource.properties'],
    ['one half of an operation', { ...READ, context: { trace_id: 't' } }, 'context.span_id'],
    ['no body', '', 'body'],
    ['half a body', '{"subject":', 'body'],
    ['a list', '[]', 'body'],
    ['a parameter of the query', READ, 'trace', '?trace=1'],
  ])('400 for %s, on record', async (_name, body, field, query = '') => {
    const answer = await post(`evaluation${query}`, body);
    expect({ status: answer.status, field: answer.body.field }).toEqual({ status: 400, field });
    const [entry] = await newestEntries(gateway, 1);
    expect(entry).toMatchObject({ event_type: 'ActionDenied', decision: 'deny', actor: `agent:${pep.name}` });
    expect(entry.reason).toContain(field);
  });

  test('a wrong content type is 400', async () => {
    for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded'])
      expect((await post('evaluation', READ, { headers: { 'content-type': type } })).status, type).toBe(400);
    const charset = { 'content-type': 'application/json; charset=utf-8' };
    expect((await post('evaluation', READ, { headers: charset })).status).toBe(200);
  });

  test('the request id comes back with every answer, and need not be there', async () => {
    const headers = { 'x-request-id': 'bfe9eb29-ab87-4ca3-be83-a1d5d8305716' };
    for (const [path, body, bearer] of [
      ['evaluation', READ, pep.token],
      ['evaluations', { ...READ, evaluations: [{}] }, pep.token],
      ['evaluation', {}, pep.token],
      ['evaluation', READ, null],
      ['nowhere', READ, pep.token],
    ] as const)
      expect((await post(path, body, { headers, bearer })).headers.get('x-request-id')).toBe(headers['x-request-id']);
    expect((await post('evaluation', READ)).headers.get('x-request-id')).toBeNull();
  });
});

describe('certification, batch', () => {
  const batch = async (body: object) => {
    const answer = await post('evaluations', body);
    return { status: answer.status, decisions: answer.body.evaluations?.map((each: any) => each.decision) };
  };
  const READ_WRITE_READ = [{ action: action('read') }, { action: action('write') }, { action: action('read') }];
  const WRITE_READ = [{ action: action('write') }, { action: action('read') }, { action: action('write') }];

  test('every item is answered, in order', async () => {
    expect(await batch({ subject: user('bob'), resource: record(), evaluations: READ_WRITE_READ })).toEqual({
      status: 200,
      decisions: [true, false, true],
    });
  });

  test('a default is replaced whole, never merged', async () => {
    const evaluations = [{}, { resource: { type: 'record', id: 'record-1' } }, { subject: { type: 'user' } }];
    const resource = record({ status: 'archived' });
    expect(await batch({ subject: user('alice'), action: action('write'), resource, evaluations })).toEqual({
      status: 200,
      decisions: [false, true, false],
    });
  });

  test.each([
    ['execute_all', READ_WRITE_READ, [true, false, true]],
    ['deny_on_first_deny', READ_WRITE_READ, [true, false]],
    ['permit_on_first_permit', WRITE_READ, [false, true]],
  ])('%s answers up to the deciding item', async (evaluations_semantic, evaluations, decisions) => {
    const body = { subject: user('bob'), resource: record(), options: { evaluations_semantic }, evaluations };
    expect(await batch(body)).toEqual({ status: 200, decisions });
  });

  test('leaves items after the deciding one unrecorded', async () => {
    const before = (await newestEntries(gateway, 1))[0].id;
    await batch({
      subject: user('bob'),
      resource: record(),
      options: { evaluations_semantic: 'deny_on_first_deny' },
      evaluations: [{ action: action('write') }, ...READ_WRITE_READ],
    });
    expect((await newestEntries(gateway, 1))[0].id).toBe(before + 1);
  });

  test('an unknown semantic is 400, and so is a list that is none', async () => {
    expect(
      (await post('evaluations', { ...READ, evaluations: [{}], options: { evaluations_semantic: 'any' } })).status,
    ).toBe(400);
    expect((await post('evaluations', { ...READ, evaluations: {} })).status).toBe(400);
    expect((await post('evaluations', { ...READ, options: 'x', evaluations: [{}] })).status).toBe(400);
  });

  test('a broken item is denied by itself', async () => {
    const answer = await post('evaluations', {
      ...READ,
      evaluations: [{}, { action: {} }, 'x', null, { resource: null }],
    });
    expect(answer.body.evaluations.map((each: any) => each.decision)).toEqual([true, false, false, false, false]);
    const recorded = (await newestEntries(gateway, 4)).map(({ reason, payload }) => [reason, payload]).sort();
    expect(recorded).toEqual([
      ['evaluations[1].action.name: is required', { action: '', resource: 'record-1' }],
      ['evaluations[2]: must be a JSON object', { action: '', resource: '' }],
      ['evaluations[3]: must be a JSON object', { action: '', resource: '' }],
      [expect.stringContaining('evaluations[4].resource: '), { action: 'read', resource: '' }],
    ]);
    expect(answer.body.evaluations[1].context).toEqual({
      reason: 'evaluations[1].action.name: is required',
      error: { status: 400, message: 'evaluations[1].action.name: is required' },
    });
  });

  test('without items it answers like a single evaluation', async () => {
    for (const evaluations of [undefined, []]) {
      const answer = await post('evaluations', { ...READ, evaluations });
      expect({ status: answer.status, ...answer.body }).toMatchObject({ status: 200, decision: true });
      expect(answer.body).not.toHaveProperty('evaluations');
    }
  });

  test('takes a thousand items, and no more', async () => {
    const many = (length: number) => ({ ...READ, evaluations: Array.from({ length }, () => ({})) });
    expect((await batch(many(1_000))).decisions).toEqual(Array.from({ length: 1_000 }, () => true));
    expect((await post('evaluations', many(1_001))).status).toBe(400);
  });

  test('large defaults are not multiplied by their items', async () => {
    const context = { text: 'x'.repeat(100_000) };
    const answer = await post('evaluations', {
      ...READ,
      context,
      evaluations: Array.from({ length: 1_000 }, () => ({})),
    });
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toBe('evaluations: must, with their defaults filled in, be at most 4194304 bytes');
  });
});

describe('certification, discovery', () => {
  test('anybody finds the endpoints, below the public URL', async () => {
    const response = await fetch(`${gateway.url}/.well-known/authzen-configuration`);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({
      policy_decision_point: 'https://svc.example/gate',
      access_evaluation_endpoint: 'https://svc.example/gate/access/v1/evaluation',
      access_evaluations_endpoint: 'https://svc.example/gate/access/v1/evaluations',
      supported_obligations: ['redact', 'set', 'cap', 'notify'],
    });
  });
});

describe('the subject of an evaluation', () => {
  const search = (subject: object) => ask(subject, action('search'), { type: 'index', id: 'web' });
  const own = search({ type: 'agent', id: 'acme/records/pep' });
  const KEY = { bearer: ADMIN_KEY };

  test('without a bearer that is known, nobody: 401', async () => {
    for (const bearer of [null, 'nonsense', 'svcagent_0123456789abcdef0123456789abcdef']) {
      const answer = await post('evaluation', own, { bearer });
      expect({ status: answer.status, challenge: answer.headers.get('www-authenticate') }).toEqual({
        status: 401,
        challenge: 'Bearer',
      });
    }
  });

  test('the subject names the agent, with its token or with a key', async () => {
    expect((await post('evaluation', own)).body.decision).toBe(true);
    expect((await post('evaluation', own, KEY)).body.decision).toBe(true);
    expect((await newestEntries(gateway, 1))[0].lineage).toMatchObject({ agent_id: 'pep' });
  });

  test("a token with another agent's name is denied and on record", async () => {
    const other = search({ type: 'agent', id: 'acme/records/other' });
    for (const [body, headers] of [
      [other, {}],
      [search(user('alice')), { 'x-svc-agent': 'acme/records/other' }],
    ] as const) {
      const answer = await post('evaluation', body, { headers });
      expect({ status: answer.status, decision: answer.body.decision }).toEqual({ status: 200, decision: false });
      expect((await newestEntries(gateway, 1))[0].event_type).toBe('A2AImpersonationAttempted');
    }
  });

  test('a key speaks for no user, unless it says for which agent', async () => {
    const body = search(user('alice'));
    const answer = await post('evaluation', body, KEY);
    expect(answer.body).toMatchObject({ decision: false, context: { cause: 'credential' } });
    const headers = { 'x-svc-agent': 'acme/records/pep' };
    expect((await post('evaluation', body, { ...KEY, headers })).body.decision).toBe(true);
  });

  test('a key with two names is refused', async () => {
    const headers = { 'x-svc-agent': 'acme/records/other' };
    expect((await post('evaluation', own, { ...KEY, headers })).status).toBe(400);
  });
});

describe('operations and the log', () => {
  const context = (span: string) => ({ trace_id: 'authzen', span_id: span, ticket: 'T-1' });

  test('begin only with both halves of an operation id', async () => {
    const without = await post('evaluation', READ);
    expect(without.body.context).toMatchObject({ op_id: null, policy: 'certification', rule_id: 'alice' });
    const answer = await post('evaluation', { ...READ, context: context('1') });
    expect(answer.body.context.op_id).toBe('authzen:1');
    expect((await gateway.call('GET', '/api/v1/ops/authzen:1')).body.state).toBe('running');
    const [entry] = await newestEntries(gateway, 1);
    expect(entry).toMatchObject({ id: answer.body.context.audit_id, op_id: 'authzen:1' });
    expect(entry.payload).toMatchObject({
      action: 'read',
      resource: 'record-1',
      attributes: { ...READ, context: context('1') },
    });
  });

  test('a resource that is too long is denied, not cut', async () => {
    const answer = await post('evaluation', ask(user('alice'), action('search'), { type: 'r', id: 'x'.repeat(2_049) }));
    expect(answer.body).toMatchObject({
      decision: false,
      context: { reason: 'the resource is longer than 2048 bytes' },
    });
    expect((await newestEntries(gateway, 1))[0].reason).toBe('the resource is longer than 2048 bytes');
  });

  test('attributes nested too deep are 400', async () => {
    const deep = `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`;
    const answer = await post(
      'evaluation',
      JSON.stringify({ ...READ, context: {} }).replace('"context":{}', `"context":${deep}`),
    );
    expect(answer.status).toBe(400);
  });
});
