import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { fastestMs } from '../support/fastest.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { head, sendRaw } from '../support/raw-http.ts';
import { type Frame, openStream, Refused, type StreamClient, type StreamOptions } from '../support/stream.ts';

let gateway: TestGateway;
const open: StreamClient[] = [];
/** The view of an operation that was registered without a check. */
const UNCHECKED = {
  action: null,
  resource: null,
  policy: null,
  rule_id: null,
  reason: null,
  estimated_cost_usd: 0,
  spent_usd: 0,
  approval_id: null,
  error: null,
  ended: null,
};

describe('stream', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({
      env: {
        SVC_IO_THREADS: '2',
        SVC_CORS_ORIGINS: 'https://board.example',
        SVC_PUBLIC_URL: 'https://gateway.example/',
      },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    expect(gateway.output.stderr.split('\n').filter((line) => line.includes('"error"'))).toEqual([]);
  });
  afterEach(() => {
    for (const dashboard of open.splice(0)) dashboard.socket.terminate();
  });

  async function dashboard(query?: string, options?: StreamOptions): Promise<StreamClient> {
    const opened = await openStream(gateway, query, options);
    open.push(opened);
    return opened;
  }

  async function refusal(query?: string, options?: StreamOptions) {
    const error = await dashboard(query, options).then(
      () => {
        throw new Error('it was let in');
      },
      (reason: unknown) => reason,
    );
    if (!(error instanceof Refused)) throw error;
    expect(error.contentType).toBe('application/problem+json');
    return { status: error.status, code: error.body.code, detail: error.body.detail };
  }

  let made = 0;
  async function apiKey(scopes: string[], orgId?: string): Promise<{ id: string; key: string }> {
    const { status, body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: `k${(made += 1)}`,
      scopes,
      ...(orgId === undefined ? {} : { org_id: orgId }),
    });
    expect(status).toBe(201);
    return body;
  }

  const agent = (orgId: string) => ({ org_id: orgId, team_id: 'search', agent_id: 'crawler' });
  const register = (opId: string, orgId = 'acme') =>
    gateway.call('POST', '/api/v1/ops', { op_id: opId, agent: agent(orgId) });
  const control = (opId: string, trigger: string) => gateway.call('POST', `/api/v1/ops/${opId}/${trigger}`);
  const check = (orgId: string, traceId: string) =>
    gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent: { orgId, teamId: 'search', agentId: 'crawler' },
      traceId,
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
    });
  const statesOf = (frames: readonly Frame[], opId: string) =>
    frames.filter(({ payload }) => payload.op_id === opId).map(({ payload }) => payload.state);

  test('every transition is sent, in order and in the specified shape', async () => {
    const board = await dashboard();
    await check('acme', 'told');
    await control('told:s', 'pause');
    await control('told:s', 'resume');
    await control('told:s', 'complete');
    await board.next(({ payload }) => payload.op_id === 'told:s' && payload.state === 'completing');
    expect(statesOf(board.frames, 'told:s')).toEqual(['pending', 'running', 'paused', 'running', 'completing']);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(board.frames.find(({ payload }) => payload.state === 'paused')).toEqual({
      id: expect.stringMatching(/^\d+$/),
      event_type: 'ops_change',
      org_id: 'acme',
      agent_id: 'crawler',
      timestamp: time,
      payload: { op_id: 'told:s', state: 'paused', updated_at: time },
    });
    expect(new Set(board.frames.map(({ id }) => id)).size).toBe(board.frames.length);
  });

  test('team and registration time are sent only to the reader that requests them', async () => {
    await register('team:s', 'team');
    const [strict, full] = await Promise.all([
      dashboard('?org_id=team&snapshot=true'),
      dashboard('?org_id=team&snapshot=true&lineage=true'),
    ]);
    for (const board of [strict, full]) await board.next(({ payload }) => payload.state === 'pending');
    await control('team:s', 'terminate');
    for (const board of [strict, full]) await board.next(({ payload }) => payload.state === 'terminated');
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(strict.frames.map(({ payload }) => payload)).toEqual([
      { op_id: 'team:s', state: 'pending', updated_at: time },
      { op_id: 'team:s', state: 'terminated', updated_at: time },
    ]);
    expect(full.frames.map(({ payload }) => payload)).toEqual([
      { op_id: 'team:s', state: 'pending', updated_at: time, registered_at: time, team_id: 'search', ...UNCHECKED },
      {
        op_id: 'team:s',
        state: 'terminated',
        updated_at: time,
        registered_at: time,
        team_id: 'search',
        ...UNCHECKED,
        ended: 'terminated',
      },
    ]);
    expect(new Set(full.frames.map(({ payload }) => payload.registered_at)).size).toBe(1);
  });

  test('two dashboards of one org get the same frames, one of another org none', async () => {
    const acme = await apiKey(['read'], 'acme');
    const globex = await apiKey(['read'], 'globex');
    const [one, two, other, all] = await Promise.all([
      dashboard('', { bearer: acme.key }),
      dashboard('?org_id=acme'),
      dashboard('', { bearer: globex.key }),
      dashboard(),
    ]);
    await register('iso:acme', 'acme');
    await register('iso:none', '');
    await register('iso:globex', 'globex');
    const seen = async (board: StreamClient, last: string) => {
      await board.next(({ payload }) => payload.op_id === last);
      return board.frames.map(({ payload }) => payload.op_id);
    };
    expect(await seen(all, 'iso:globex')).toEqual(['iso:acme', 'iso:none', 'iso:globex']);
    expect(await seen(other, 'iso:globex')).toEqual(['iso:globex']);
    expect(await seen(one, 'iso:acme')).toEqual(['iso:acme']);
    expect(await seen(two, 'iso:acme')).toEqual(['iso:acme']);
    expect(one.frames).toEqual(two.frames);
  });

  test('only the requested kinds are sent', async () => {
    const board = await dashboard('?types=agent,violation');
    const everything = await dashboard();
    await register('kinds:1');
    await gateway.call('POST', '/api/v1/agents', {
      agent: agent('kinds'),
      credential_token: 'kinds-token-0123456789-0123456789-0123',
    });
    await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent: { orgId: 'elsewhere', teamId: 'search', agentId: 'crawler' },
      credentialToken: 'kinds-token-0123456789-0123456789-0123',
      traceId: 'kinds',
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
    });
    await board.next(({ event_type }) => event_type === 'violation');
    expect(board.frames.map(({ event_type, org_id, payload }) => ({ event_type, org_id, payload }))).toEqual([
      {
        event_type: 'agent',
        org_id: 'kinds',
        payload: { change: 'registered', team_id: 'search', key: 'kinds/search/crawler', parent: null },
      },
      {
        event_type: 'violation',
        org_id: 'kinds',
        payload: {
          reason: 'the credential token is registered to a different agent',
          action: 'tool.call',
          team_id: 'search',
          claimed_org_id: 'elsewhere',
          claimed_team_id: 'search',
          claimed_agent_id: 'crawler',
        },
      },
    ]);
    await everything.next(({ event_type }) => event_type === 'violation');
    expect(everything.frames.map(({ event_type }) => event_type)).toEqual(['ops_change', 'agent', 'violation']);
  });

  test('a snapshot sends current operations first, each once, then the changes', async () => {
    const ids = Array.from({ length: 1_200 }, (_, at) => `snap-${at}:s`);
    for (let at = 0; at < ids.length; at += 100)
      await Promise.all(ids.slice(at, at + 100).map((id) => register(id, 'snap')));
    await control('snap-7:s', 'terminate');
    const board = await dashboard('?org_id=snap&snapshot=true');
    await Promise.all(ids.slice(600, 700).map((id) => control(id, 'terminate')));
    for (const id of ids.slice(600, 700))
      await board.next(({ payload }) => payload.op_id === id && payload.state === 'terminated');
    await board.next(({ payload }) => payload.op_id === 'snap-1199:s');
    const last = new Map(board.frames.map(({ payload }) => [payload.op_id, payload.state]));
    expect(last.size).toBe(1_200);
    expect({ snap7S: last.get('snap-7:s'), snap8S: last.get('snap-8:s'), snap650S: last.get('snap-650:s') }).toEqual({
      snap7S: 'terminated',
      snap8S: 'pending',
      snap650S: 'terminated',
    });
    // No operation is ever told to be pending after it was told to be terminated.
    for (const id of ids.slice(600, 700))
      expect(statesOf(board.frames, id).join()).toMatch(/^(pending,)?terminated(,terminated)?$/);
    expect(new Set(board.frames.map(({ id }) => id)).size).toBe(board.frames.length);
    expect(board.frames.every(({ event_type }) => event_type === 'ops_change')).toBe(true);
  });

  test('an empty snapshot sends nothing, and later events follow', async () => {
    const board = await dashboard('?org_id=empty&snapshot=true');
    await register('empty:1', 'empty');
    await board.next(({ payload }) => payload.op_id === 'empty:1');
    expect(board.frames).toHaveLength(1);
  });

  test.each<[string, string, StreamOptions, object]>([
    [
      'no credential',
      '',
      { bearer: null },
      {
        status: 401,
        code: 'unauthenticated',
        detail: 'no credential presented; send Authorization: Bearer …, or ?ticket= from POST /api/v1/auth/ws-ticket',
      },
    ],
    [
      'an unknown credential',
      '',
      { bearer: 'nonsense' },
      { status: 401, code: 'unauthenticated', detail: 'the credential is unknown, revoked or expired' },
    ],
    [
      'an unknown ticket',
      '?ticket=nonsense',
      {},
      {
        status: 401,
        code: 'unauthenticated',
        detail: 'the ticket is invalid, expired or already used; request a new one',
      },
    ],
    [
      'a page of another site',
      '',
      { headers: { origin: 'https://evil.example' } },
      { status: 403, code: 'foreign_origin', detail: 'requests from origin https://evil.example are not allowed' },
    ],
    [
      'a page without an origin of its own',
      '',
      { headers: { origin: 'null' } },
      { status: 403, code: 'foreign_origin', detail: 'requests from origin null are not allowed' },
    ],
    [
      'an unknown kind',
      '?types=ops_change,gossip',
      {},
      {
        status: 400,
        code: 'invalid_argument',
        detail:
          'types: "gossip" is not one of ops_change, violation, budget, agent, account, halt, approval, policy, limit',
      },
    ],
    [
      'a snapshot that is neither wanted nor not',
      '?snapshot=maybe',
      {},
      { status: 400, code: 'invalid_argument', detail: 'snapshot: must be true or false' },
    ],
    [
      'a lineage that is neither wanted nor not',
      '?lineage=1',
      {},
      { status: 400, code: 'invalid_argument', detail: 'lineage: must be true or false' },
    ],
    [
      'an org that is left empty, which would be all of them,',
      '?org_id=',
      {},
      { status: 400, code: 'invalid_argument', detail: 'org_id: is not a valid org name' },
    ],
    [
      'an org that is no name',
      '?org_id=a%2Fb',
      {},
      { status: 400, code: 'invalid_argument', detail: 'org_id: is not a valid org name' },
    ],
  ])('%s is refused before the upgrade, as a problem', async (_what, query, options, expected) => {
    expect(await refusal(query, options)).toEqual(expected);
  });

  test('a credential of one org is refused the stream of another', async () => {
    const { key } = await apiKey(['read'], 'acme');
    expect(await refusal('?org_id=globex', { bearer: key })).toEqual({
      status: 403,
      code: 'org_forbidden',
      detail: 'this credential has no access to org globex',
    });
  });

  test('events about accounts are for administrators', async () => {
    const { key } = await apiKey(['read', 'write']);
    expect(await refusal('?types=account', { bearer: key })).toEqual({
      status: 403,
      code: 'insufficient_scope',
      detail: 'this requires the admin scope; the credential has read, write',
    });
    await dashboard('?types=account');
  });

  test.each(['https://board.example', 'https://gateway.example', 'own'])(
    'a page of %s may open the stream',
    async (origin) => {
      const host = new URL(gateway.url).host;
      await dashboard('', { headers: { origin: origin === 'own' ? `http://${host}` : origin } });
    },
  );

  test('another WebSocket version is refused with the supported one', async () => {
    const handshake = {
      Authorization: `Bearer ${ADMIN_KEY}`,
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const { statuses, text } = await sendRaw(gateway, [
      head('GET /api/v1/stream HTTP/1.1', { ...handshake, 'Sec-WebSocket-Version': '8' }),
    ]);
    expect(statuses).toEqual([426]);
    expect(text).toMatch(/\r\nSec-WebSocket-Version: 13\r\n/i);
  });

  const HANDSHAKE = {
    Authorization: `Bearer ${ADMIN_KEY}`,
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
  };

  test.each<[what: string, headers: Readonly<Record<string, string>>]>([
    ['without an upgrade', {}],
    ['whose upgrade a proxy has taken out', { Connection: 'keep-alive' }],
    ['whose upgrade is not meant for this connection', { Connection: 'keep-alive', Upgrade: 'websocket' }],
    ['to another protocol', { Connection: 'Upgrade', Upgrade: 'h2c' }],
  ])('a handshake %s opens nothing: a later request would be mixed with a stream', async (_what, headers) => {
    const { statuses } = await sendRaw(gateway, [head('GET /api/v1/stream HTTP/1.1', { ...HANDSHAKE, ...headers })]);
    expect(statuses).toEqual([426]);
  });

  test.each<[what: string, headers: Readonly<Record<string, string>>]>([
    ['beside another word, in any case', { Connection: 'keep-alive, uPgrade', Upgrade: 'WebSocket' }],
    ['in a second header of its name', { Connection: 'keep-alive\r\nConnection: Upgrade', Upgrade: 'websocket' }],
  ])('a handshake that says so %s opens a stream', async (_what, headers) => {
    const { statuses } = await sendRaw(gateway, [head('GET /api/v1/stream HTTP/1.1', { ...HANDSHAKE, ...headers })]);
    expect(statuses).toEqual([101]);
  });

  test('a request without a handshake gets an answer that names the protocol', async () => {
    const { status, headers, body } = await gateway.call('GET', '/api/v1/stream');
    expect({
      status,
      upgrade: headers.get('upgrade'),
      secWebsocketVersion: headers.get('sec-websocket-version'),
      code: body.code,
    }).toEqual({ status: 426, upgrade: 'websocket', secWebsocketVersion: '13', code: 'upgrade_required' });
    expect((await gateway.call('GET', '/api/v1/stream', undefined, null)).status).toBe(401);
  });

  const ticketOf = async (bearer?: string): Promise<string> => {
    const { status, body } = await gateway.call('POST', '/api/v1/auth/ws-ticket', undefined, bearer);
    expect({ status, expires_in: body.expires_in }).toEqual({ status: 200, expires_in: 30 });
    return body.ticket as string;
  };

  test("a ticket opens one stream, in any thread, with its owner's view", async () => {
    const { key } = await apiKey(['read'], 'acme');
    const ticket = await ticketOf(key);
    const attempts = await Promise.allSettled(
      Array.from({ length: 12 }, () => dashboard(`?ticket=${ticket}`, { bearer: null })),
    );
    const opened = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    expect(opened).toHaveLength(1);
    for (const attempt of attempts)
      if (attempt.status === 'rejected') expect((attempt.reason as Refused).status).toBe(401);
    await register('ticket:globex', 'globex');
    await register('ticket:acme', 'acme');
    await opened[0]!.next(({ payload }) => payload.op_id === 'ticket:acme');
    expect(opened[0]!.frames).toHaveLength(1);
  });

  test('a ticket of a revoked key opens nothing', async () => {
    const { id, key } = await apiKey(['read']);
    const ticket = await ticketOf(key);
    await gateway.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
    expect(await refusal(`?ticket=${ticket}`, { bearer: null })).toMatchObject({
      status: 401,
      code: 'unauthenticated',
    });
  });

  /**
   * Revokes a key that both threads know well, and answers how much later than it takes to ask the last of them has
   * felt it.
   */
  async function feltAfterMs(): Promise<number> {
    const { id, key } = await apiKey(['read']);
    const {
      body: { token },
    } = await gateway.call('POST', '/api/v1/auth/token', {}, key);
    const bystander = await apiKey(['read']);
    const boards = await Promise.all(
      [key, token, key, token, key, token, key, token].map((bearer: string) => dashboard('', { bearer })),
    );
    const ticketed = await dashboard(`?ticket=${await ticketOf(key)}`, { bearer: null });
    const other = await dashboard('', { bearer: bystander.key });
    // Connections of their own, so that both threads have them, and each has seen the credential to be good.
    const agents = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    const ask = (agent: Agent, bearer: string) =>
      new Promise<number>((resolve, reject) => {
        get(
          `${gateway.url}/api/v1/ops?per_page=1`,
          { agent, headers: { authorization: `Bearer ${bearer}` } },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        ).on('error', reject);
      });
    const askAll = () => Promise.all(agents.flatMap((agent) => [ask(agent, key), ask(agent, token as string)]));
    expect(new Set(await askAll())).toEqual(new Set([200]));
    const askingAtMs = performance.now();
    await askAll();
    const askingMs = performance.now() - askingAtMs;

    const closedAtMs = Promise.all(
      [...boards, ticketed].map(async ({ closed }) => ({ ...(await closed), atMs: performance.now() })),
    );
    const revoked = await gateway.call('POST', `/api/v1/iam/api-keys/${id}/revoke`);
    const revokedAtMs = performance.now();
    expect(revoked.status).toBe(204);
    expect(new Set(await askAll())).toEqual(new Set([401]));
    const refusedAtMs = performance.now();
    const closings = await closedAtMs;
    for (const { code, reason } of closings)
      expect({ code, reason }).toEqual({ code: 4401, reason: 'the credential has expired or was revoked' });
    expect(other.socket.readyState).toBe(other.socket.OPEN);
    for (const agent of agents) agent.destroy();
    return Math.max(refusedAtMs, ...closings.map(({ atMs }) => atMs)) - revokedAtMs - askingMs;
  }

  test('revoking a key applies within 100 ms in every thread, on HTTP and streams', async () => {
    expect(await fastestMs(100, feltAfterMs)).toBeLessThan(100);
  });

  test('a stream ends with its key, its token or the token of its ticket', async () => {
    const { status, body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'short',
      scopes: ['read'],
      expires_at: new Date(Date.now() + 4_000).toISOString(),
    });
    expect(status).toBe(201);
    const {
      body: { token },
    } = await gateway.call('POST', '/api/v1/auth/token', {}, body.key);
    const ticket = await ticketOf(token);
    const boards = await Promise.all([
      dashboard('', { bearer: body.key }),
      dashboard('', { bearer: token }),
      dashboard(`?ticket=${ticket}`, { bearer: null }),
    ]);
    for (const board of boards)
      expect(await board.closed).toEqual({ code: 4401, reason: 'the credential has expired or was revoked' });
  });

  test('messages of a client are ignored if few and refused if many', async () => {
    const [quiet, long, busy] = await Promise.all([dashboard('?org_id=talk'), dashboard(), dashboard()]);
    quiet.socket.send('ping');
    long.socket.send('x'.repeat(2_000));
    expect(await long.closed).toEqual({ code: 1009, reason: 'this stream does not accept messages' });
    for (let said = 0; said < 200; said += 1) busy.socket.send('hello?');
    expect(await busy.closed).toEqual({ code: 1008, reason: 'this stream does not accept messages' });
    await register('talk:1', 'talk');
    await quiet.next(({ payload }) => payload.op_id === 'talk:1');
  });

  test('refuses one stream too many, and a closed one frees its place', async () => {
    const small = await startTestGateway({ env: { SVC_MAX_STREAMS: '2', SVC_IO_THREADS: '1' } });
    const one = await openStream(small);
    await openStream(small);
    await expect(openStream(small)).rejects.toMatchObject({ status: 503, body: { code: 'overloaded' } });
    await one.close();
    await eventually(() => openStream(small));
    await small.stop();
  });

  test('a gateway shutting down sends a close frame', async () => {
    const other = await startTestGateway({ env: { SVC_IO_THREADS: '2' } });
    const boards = await Promise.all(Array.from({ length: 6 }, () => openStream(other)));
    const ended = other.stop('SIGTERM');
    for (const { closed } of boards)
      expect(await closed).toEqual({ code: 1001, reason: 'the gateway is shutting down' });
    expect(await ended).toBe(0);
  });

  test('spend near a cap is sent to dashboards', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-policy-'));
    writeFileSync(
      join(folder, 'p.yaml'),
      'name: all\nscope: global\nrules:\n  - id: any\n    actions: ["*"]\n    resources: ["*"]\n    effect: allow\nbudget: { org_daily_limit_usd: 10, timezone: UTC, action_on_exceed: deny }\n',
    );
    const other = await startTestGateway({ env: { SVC_POLICY_PATH: folder } });
    const board = await openStream(other, '?types=budget');
    await other.call('POST', '/svc.governance.v1.AgentService/RecordUsage', {
      agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      costUsd: 9.5,
    });
    const frame = await board.next(({ event_type }) => event_type === 'budget');
    expect(frame).toMatchObject({
      org_id: 'acme',
      agent_id: null,
      payload: { tier: 'org', team_id: null, period: 'daily', spent_usd: 9.5, limit_usd: 10 },
    });
    await other.stop();
    rmSync(folder, { recursive: true });
  });

  test('a reader that stalls costs no other anything, and learns what it missed', async () => {
    const [slow, fast] = [await dashboard('?org_id=flood'), await dashboard('?org_id=flood')];
    slow.socket.pause();
    const batches = 80;
    const perBatch = 500;
    for (let at = 0; at < batches; at += 1) {
      const requests = Array.from({ length: perBatch }, (_, of) => ({
        agent: { orgId: 'flood', teamId: 'search', agentId: `agent-${of}` },
        traceId: `flood-${at}-${of}`,
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      }));
      expect(
        (await gateway.call('POST', '/svc.governance.v1.PolicyService/BatchCheckActions', { requests })).status,
      ).toBe(200);
    }
    const isLast = ({ payload }: Frame) =>
      payload.op_id === `flood-${batches - 1}-${perBatch - 1}:s` && payload.state === 'running';
    await fast.next(isLast);
    expect(new Set(fast.frames.map(({ payload }) => payload.op_id)).size).toBe(batches * perBatch);
    slow.socket.resume();
    await slow.next(isLast);
    const dropped = slow.frames
      .filter(({ event_type }) => event_type === 'lagged')
      .reduce((sum, { payload }) => sum + Number(payload.dropped), 0);
    const last = new Map(slow.frames.map(({ payload }) => [payload.op_id, payload.state]));
    const unknown = batches * perBatch - [...last.values()].filter((state) => state === 'running').length;
    expect(unknown).toBeLessThanOrEqual(dropped);
    // it was behind, and so was spared what was out of date
    expect(slow.frames.length).toBeLessThan(batches * perBatch * 2);
  });
});
