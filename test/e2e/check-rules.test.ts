/**
 * The rules of a check that an attacker would try (docs/spec.md, Checks), over both protocols, and what the
 * audit log says of each.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/core/audit/audit.ts';
import { ARRANGEMENTS } from '../support/arrangements.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { type GrpcClient, grpcClient } from '../support/grpc-client.ts';

const CRAWLER = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const SIBLING = { orgId: 'acme', teamId: 'search', agentId: 'sibling' };
const STRANGER = { orgId: 'globex', teamId: 'search', agentId: 'crawler' };
const TOKENS = new Map(
  [CRAWLER, SIBLING, STRANGER].map((agent) => [
    agent,
    `token-of-${agent.orgId}-${agent.agentId}-0123456789-0123456789`,
  ]),
);
const WEB = { action: 'tool.call', resource: 'web_search' };
const NOTHING_ALLOWS = { action: 'tool.call', resource: 'launch_rocket' };

let gateway: GatewayHere;
let grpc: GrpcClient;

type Answer = {
  readonly status: string;
  readonly decision?: string;
  readonly reason?: string;
  readonly opState?: string;
  readonly auditId?: number;
};
type Door = { readonly name: string; call(method: string, fields: object, bearer?: string): Promise<Answer> };

const word = (value: unknown): string =>
  String(value)
    .replace(/^(DECISION|OP_STATE)_/, '')
    .toLowerCase();

const CONNECT: Door = {
  name: 'Connect',
  call: async (method, fields, bearer) => {
    const service = method === 'CheckAction' ? 'PolicyService' : 'AgentService';
    const { status, body } = await gateway.call(
      'POST',
      `/svc.governance.v1.${service}/${method}`,
      fields,
      bearer ?? null,
    );
    if (status !== 200) return { status: body.code };
    return {
      status: 'ok',
      decision: word(body.decision),
      reason: body.reason,
      opState: word(body.opState ?? 'unspecified'),
      auditId: Number(body.auditId),
    };
  },
};
const GRPC: Door = {
  name: 'gRPC',
  call: async (method, fields, bearer) => {
    const { code, message } = await grpc.call(method, fields, bearer);
    if (message === undefined) return { status: code.toLowerCase() };
    return {
      status: 'ok',
      decision: word(message.decision),
      reason: message.reason as string,
      opState: word(message.opState),
      auditId: message.auditId as number,
    };
  },
};

describe.each(ARRANGEMENTS)('check rules, $arrangement', ({ env }) => {
  beforeAll(async () => {
    gateway = await startGatewayHere({ env });
    grpc = grpcClient(gateway.grpc);
    for (const [agent, credentialToken] of TOKENS)
      await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', { agent, credentialToken });
  });
  afterAll(async () => {
    grpc?.close();
    await gateway?.stop();
  });

  const entry = (id: number | undefined): AuditEntry => {
    const found = auditEntries(gateway.dataDir).find((candidate) => candidate.id === id);
    if (found === undefined) throw new Error(`entry ${id} is not in the log`);
    return found;
  };
  const lineageOf = ({ lineage }: AuditEntry): string => `${lineage.org_id}/${lineage.team_id}/${lineage.agent_id}`;
  const opState = async (opId: string): Promise<string> => {
    const { status, body } = await gateway.call('GET', `/api/v1/ops/${opId}`);
    return status === 200 ? body.state : body.code;
  };
  const control = (opId: string, trigger: string) => gateway.call('POST', `/api/v1/ops/${opId}/${trigger}`);

  describe.each([CONNECT, GRPC])('over $name', (door) => {
    const check = (agent: typeof CRAWLER, traceId: string, fields: object = {}): Promise<Answer> =>
      door.call('CheckAction', {
        agent,
        credentialToken: TOKENS.get(agent) ?? '',
        traceId: `${door.name}-${traceId}`,
        spanId: 's',
        ...WEB,
        ...fields,
      });
    const id = (traceId: string): string => `${door.name}-${traceId}:s`;

    describe('rule 1: identity comes before everything else', () => {
      test('a missing or unknown token is denied and recorded, and begins no operation', async () => {
        for (const [credentialToken, reason] of [
          ['', 'no credential token presented; register the agent and send its token'],
          [
            'unknown-token-0123456789-0123456789',
            'the credential token is not registered; register the agent again to get a new one',
          ],
        ]) {
          const answer = await check(CRAWLER, 'anonymous', { credentialToken });
          expect(answer).toMatchObject({ status: 'ok', decision: 'deny', reason, opState: 'unspecified' });
          expect(entry(answer.auditId)).toMatchObject({
            event_type: 'ActionDenied',
            decision: 'deny',
            reason,
            actor: 'anonymous',
            op_id: id('anonymous'),
            payload: { identity: 'unverified' },
          });
          expect(await opState(id('anonymous'))).toBe('not_found');
        }
      });

      test('a token presented for another org is an impersonation and changes nothing', async () => {
        expect(await check(STRANGER, 'theirs')).toMatchObject({ decision: 'allow' });
        for (const [traceId, before] of [
          ['theirs', 'running'],
          ['fresh', 'not_found'],
        ] as const) {
          for (const action of [WEB, NOTHING_ALLOWS]) {
            const answer = await check(STRANGER, traceId, { credentialToken: TOKENS.get(CRAWLER), ...action });
            expect(answer).toMatchObject({
              status: 'ok',
              decision: 'deny',
              reason: 'the credential token is registered to a different agent',
              opState: 'unspecified',
            });
            const recorded = entry(answer.auditId);
            expect(recorded).toMatchObject({
              event_type: 'A2AImpersonationAttempted',
              decision: 'deny',
              payload: { claimed_org_id: 'globex', claimed_team_id: 'search', claimed_agent_id: 'crawler' },
            });
            expect(lineageOf(recorded)).toBe('acme/search/crawler');
            expect(await opState(id(traceId))).toBe(before);
          }
        }
        expect(
          auditEntries(gateway.dataDir).filter(
            ({ event_type, lineage, payload }) =>
              event_type === 'A2AImpersonationAttempted' &&
              payload.claimed_org_id === 'globex' &&
              lineage.org_id !== 'acme',
          ),
        ).toEqual([]);
      });

      test("the attempt is found by event type and by the token's org, not the claimed one", async () => {
        await check(STRANGER, 'findable', { credentialToken: TOKENS.get(CRAWLER) });
        const found = async (query: string): Promise<unknown[]> =>
          (
            await gateway.call(
              'GET',
              `/api/v1/logs?event_type=A2AImpersonationAttempted&op_id=${id('findable')}${query}`,
            )
          ).body.entries;
        await eventually(async () =>
          expect(await found('')).toMatchObject([
            { lineage: { org_id: 'acme' }, payload: { claimed_org_id: 'globex' } },
          ]),
        );
        expect(await found('&org_id=acme')).toHaveLength(1);
        expect(await found('&org_id=globex')).toEqual([]);
      });

      test('a token of the same org is no better', async () => {
        const answer = await check(SIBLING, 'sibling', { credentialToken: TOKENS.get(CRAWLER) });
        expect(answer).toMatchObject({
          decision: 'deny',
          reason: 'the credential token is registered to a different agent',
        });
        expect(entry(answer.auditId).event_type).toBe('A2AImpersonationAttempted');
        expect(await opState(id('sibling'))).toBe('not_found');
      });

      test.each([
        ['CompleteOp', {}],
        ['RecordUsage', { costUsd: 1 }],
        ['AckOpControl', { sequence: 1 }],
      ])("%s with another agent's token is refused and recorded, and changes nothing", async (method, fields) => {
        const opId = id(`own-${method}`);
        await check(STRANGER, `own-${method}`);
        const answer = await door.call(method, {
          agent: STRANGER,
          credentialToken: TOKENS.get(CRAWLER),
          opId,
          ...fields,
        });
        expect(answer).toEqual({ status: 'permission_denied' });
        const found = async (): Promise<unknown[]> =>
          (await gateway.call('GET', `/api/v1/logs?event_type=A2AImpersonationAttempted&op_id=${opId}`)).body.entries;
        await eventually(async () =>
          expect(await found()).toMatchObject([
            {
              lineage: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
              actor: 'agent:acme/search/crawler',
              decision: 'deny',
              reason: 'the credential token is registered to a different agent',
              payload: { method, claimed_org_id: 'globex', claimed_team_id: 'search', claimed_agent_id: 'crawler' },
            },
          ]),
        );
        expect(await opState(opId)).toBe('running');
      });

      test('an impersonator cannot complete, and a deregistered agent is unknown', async () => {
        const credentialToken = 'passing-token-0123456789-0123456789';
        const passing = { ...CRAWLER, agentId: `passing-${door.name}` };
        await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
          agent: passing,
          credentialToken,
        });
        expect(await check(passing, 'passing', { credentialToken })).toMatchObject({ decision: 'allow' });
        await gateway.call('POST', '/svc.governance.v1.AgentService/DeregisterAgent', { agent: passing });
        expect(await check(passing, 'passing', { credentialToken })).toMatchObject({
          decision: 'deny',
          opState: 'unspecified',
        });
        expect(await door.call('CompleteOp', { agent: passing, credentialToken, opId: id('passing') })).toEqual({
          status: 'unauthenticated',
        });
        expect(await opState(id('passing'))).toBe('running');
      });
    });

    describe('rule 2: an operation belongs to the agent that began it', () => {
      test('another agent of its org is denied, and the operation stays unchanged', async () => {
        await check(CRAWLER, 'owned');
        for (const action of [WEB, NOTHING_ALLOWS]) {
          const answer = await check(SIBLING, 'owned', action);
          expect(answer).toMatchObject({
            decision: 'deny',
            reason: 'the operation belongs to another agent; use your own trace_id and span_id',
            opState: 'unspecified',
          });
          expect(lineageOf(entry(answer.auditId))).toBe('acme/search/sibling');
        }
        expect(await opState(id('owned'))).toBe('running');
      });

      test('an agent of another org may use its id for one of its own', async () => {
        await check(CRAWLER, 'shared');
        expect(await check(STRANGER, 'shared')).toMatchObject({ decision: 'allow', opState: 'running' });
        expect(await opState(id('shared'))).toBe('ambiguous');
      });
    });

    describe('rule 3: a paused or finished operation accepts no checks', () => {
      test.each([
        ['paused', ['pause'], 'the operation is paused; wait until an operator resumes it'],
        ['completing', ['complete'], 'the operation is completing; start a new one'],
        ['terminated', ['terminate'], 'the operation is terminated; start a new one'],
      ])('%s', async (state, triggers, reason) => {
        const trace = `held-${state}`;
        await check(CRAWLER, trace);
        for (const trigger of triggers) await control(id(trace), trigger);
        expect(await check(CRAWLER, trace)).toMatchObject({ decision: 'deny', reason, opState: state });
        expect(await opState(id(trace))).toBe(state);
      });

      test('a resumed one accepts checks, and a later deny does not end a running one', async () => {
        await check(CRAWLER, 'resumed');
        await control(id('resumed'), 'pause');
        await control(id('resumed'), 'resume');
        const { body: before } = await gateway.call('GET', `/api/v1/ops/${id('resumed')}`);
        expect(await check(CRAWLER, 'resumed')).toMatchObject({ decision: 'allow', opState: 'running' });
        expect((await gateway.call('GET', `/api/v1/ops/${id('resumed')}`)).body).toEqual(before);
        expect(await check(CRAWLER, 'resumed', NOTHING_ALLOWS)).toMatchObject({ decision: 'deny', opState: 'running' });
      });

      test('a registered operation is pending until its first check decides it', async () => {
        for (const [trace, action, state] of [
          ['registered', WEB, 'running'],
          ['registered-denied', NOTHING_ALLOWS, 'terminated'],
        ] as const) {
          const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
          expect((await gateway.call('POST', '/api/v1/ops', { op_id: id(trace), agent })).body).toMatchObject({
            state: 'pending',
          });
          expect(await check(CRAWLER, trace, action)).toMatchObject({ opState: state });
          expect(await opState(id(trace))).toBe(state);
        }
      });
    });

    test("rule 4: a check for a caller records both, on the agent's credential alone", async () => {
      const caller = { orgId: 'globex', teamId: 'sales', agentId: 'closer' };
      const allowed = await check(CRAWLER, 'a2a', { caller });
      expect(allowed).toMatchObject({ decision: 'allow' });
      expect(entry(allowed.auditId)).toMatchObject({
        event_type: 'A2ACallIntercepted',
        decision: 'allow',
        actor: 'agent:acme/search/crawler',
        payload: { caller: { org_id: 'globex', team_id: 'sales', agent_id: 'closer' } },
      });
      const denied = await check(CRAWLER, 'a2a-denied', { caller, ...NOTHING_ALLOWS });
      expect(entry(denied.auditId)).toMatchObject({
        event_type: 'ActionDenied',
        payload: { caller: { agent_id: 'closer' } },
      });
      // The caller's token is not the agent's.
      expect(
        await check(CRAWLER, 'a2a-borrowed', { caller: STRANGER, credentialToken: TOKENS.get(STRANGER) }),
      ).toMatchObject({ decision: 'deny', reason: 'the credential token is registered to a different agent' });
      expect(await opState(id('a2a-borrowed'))).toBe('not_found');
    });

    test('rule 5: malformed ids are refused, neither decided nor recorded', async () => {
      const before = auditEntries(gateway.dataDir).length;
      for (const fields of [
        { traceId: '' },
        { spanId: '' },
        { traceId: 'a:b' },
        { spanId: 'a:b' },
        { traceId: 'a\u0001' },
        { spanId: 'x'.repeat(257) },
        { agent: { ...CRAWLER, teamId: '' } },
        { agent: undefined },
      ]) {
        expect(
          await door.call('CheckAction', {
            agent: CRAWLER,
            credentialToken: TOKENS.get(CRAWLER),
            traceId: 't',
            spanId: 's',
            ...WEB,
            ...fields,
          }),
        ).toEqual({ status: 'invalid_argument' });
      }
      expect(auditEntries(gateway.dataDir)).toHaveLength(before);
    });

    describe('rule 6: only the owner completes and acknowledges', () => {
      test('another agent of the org is refused, and one of another org gets not found', async () => {
        await check(CRAWLER, 'mine');
        await control(id('mine'), 'pause');
        for (const [agent, status] of [
          [SIBLING, 'permission_denied'],
          [STRANGER, 'not_found'],
        ] as const) {
          const own = { agent, credentialToken: TOKENS.get(agent), opId: id('mine') };
          expect(await door.call('CompleteOp', own)).toEqual({ status });
          expect(await door.call('AckOpControl', { ...own, sequence: 1 })).toEqual({ status });
        }
        expect(await opState(id('mine'))).toBe('paused');
        await control(id('mine'), 'resume');
        expect(
          await door.call('CompleteOp', { agent: CRAWLER, credentialToken: TOKENS.get(CRAWLER), opId: id('mine') }),
        ).toMatchObject({ status: 'ok', opState: 'completing' });
        expect(
          await door.call('CompleteOp', { agent: CRAWLER, credentialToken: TOKENS.get(CRAWLER), opId: id('mine') }),
        ).toEqual({ status: 'failed_precondition' });
      });
    });

    test('a dry run is decided and recorded like a check, and changes no operation', async () => {
      const rehearsed = await check(CRAWLER, 'dry', { dryRun: true });
      expect(rehearsed).toMatchObject({ decision: 'allow', opState: 'unspecified' });
      expect(entry(rehearsed.auditId)).toMatchObject({ event_type: 'ActionAllowed', payload: { dry_run: true } });
      expect(await opState(id('dry'))).toBe('not_found');
      await check(CRAWLER, 'dry');
      expect(await check(CRAWLER, 'dry', { dryRun: true, ...NOTHING_ALLOWS })).toMatchObject({
        decision: 'deny',
        opState: 'running',
      });
      expect(await opState(id('dry'))).toBe('running');
    });

    test('a bearer with write scope acts for any agent; one without does not', async () => {
      const reader = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'reader', scopes: ['read'] })).body
        .key as string;
      const bound = (
        await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'bound', scopes: ['write'], org_id: 'globex' })
      ).body.key as string;
      const request = {
        agent: { ...CRAWLER, agentId: 'unregistered' },
        traceId: `${door.name}-bearer`,
        spanId: 's',
        ...WEB,
      };
      expect(await door.call('CheckAction', request, ADMIN_KEY)).toMatchObject({ status: 'ok', decision: 'allow' });
      expect(await door.call('CheckAction', request, reader)).toEqual({ status: 'permission_denied' });
      expect(await door.call('CheckAction', request, 'no-key-of-this-gateway-0123456789')).toEqual({
        status: 'unauthenticated',
      });
      const foreign = await door.call('CheckAction', { ...request, traceId: `${door.name}-foreign` }, bound);
      expect(foreign).toMatchObject({
        status: 'ok',
        decision: 'deny',
        reason: 'the credential has no access to the org of the claimed agent',
        opState: 'unspecified',
      });
      expect(entry(foreign.auditId)).toMatchObject({
        event_type: 'A2AImpersonationAttempted',
        lineage: { org_id: 'globex' },
        payload: { claimed_org_id: 'acme' },
      });
      expect(await opState(id('foreign'))).toBe('not_found');
      // A bearer does not help a wrong token.
      expect(
        await door.call(
          'CheckAction',
          { ...request, credentialToken: 'wrong-token-0123456789-0123456789-01' },
          ADMIN_KEY,
        ),
      ).toMatchObject({ decision: 'deny', opState: 'unspecified' });
    });
  });

  test('when an answer arrives the registry holds the operation in its state', async () => {
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const action = index % 2 === 0 ? WEB : NOTHING_ALLOWS;
        const answer = await CONNECT.call('CheckAction', {
          agent: CRAWLER,
          credentialToken: TOKENS.get(CRAWLER),
          traceId: `order-${index}`,
          spanId: 's',
          ...action,
        });
        expect(await opState(`order-${index}:s`)).toBe(index % 2 === 0 ? 'running' : 'terminated');
        expect(answer.opState).toBe(index % 2 === 0 ? 'running' : 'terminated');
      }),
    );
  });

  test('terminate is idempotent, and every move outside the table is 409', async () => {
    await CONNECT.call('CheckAction', {
      agent: CRAWLER,
      credentialToken: TOKENS.get(CRAWLER),
      traceId: 'table',
      spanId: 's',
      ...WEB,
    });
    expect((await control('table:s', 'resume')).body).toMatchObject({
      status: 409,
      code: 'invalid_transition',
      from: 'running',
      trigger: 'resume',
    });
    expect((await control('table:s', 'pause')).body).toMatchObject({ state: 'paused' });
    expect((await control('table:s', 'pause')).status).toBe(409);
    expect((await control('table:s', 'complete')).status).toBe(409);
    const first = await control('table:s', 'terminate');
    expect(first.body).toMatchObject({ state: 'terminated' });
    expect(await control('table:s', 'terminate')).toMatchObject({ status: 200, body: first.body });
    expect((await control('table:s', 'resume')).status).toBe(409);
    expect((await control('nobody:s', 'terminate')).body).toMatchObject({ status: 404, code: 'not_found' });
  });

  test('a finished operation expires, and its id may be used again', async () => {
    const quick = await startGatewayHere({ env: { SVC_OPS_TTL_SECS: '1', SVC_OPS_SWEEP_SECS: '1' } });
    try {
      await quick.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
        agent: CRAWLER,
        credentialToken: TOKENS.get(CRAWLER),
      });
      const check = async (traceId: string) =>
        (
          await quick.call(
            'POST',
            '/svc.governance.v1.PolicyService/CheckAction',
            { agent: CRAWLER, credentialToken: TOKENS.get(CRAWLER), traceId, spanId: 's', ...WEB },
            null,
          )
        ).body;
      for (const trace of ['done', 'ended', 'going', 'held']) await check(trace);
      const stateAfter = async (opId: string, trigger: string) =>
        (await quick.call('POST', `/api/v1/ops/${opId}/${trigger}`)).body.state;
      expect({
        stateAfterPause: await stateAfter('held:s', 'pause'),
        stateAfterComplete: await stateAfter('done:s', 'complete'),
        stateAfterTerminate: await stateAfter('ended:s', 'terminate'),
      }).toEqual({ stateAfterPause: 'paused', stateAfterComplete: 'completing', stateAfterTerminate: 'terminated' });
      const states = async (): Promise<object> =>
        Object.fromEntries(
          (await quick.call('GET', '/api/v1/ops')).body.ops.map(
            ({ op_id, state }: { op_id: string; state: string }) => [op_id, state],
          ),
        );
      await eventually(async () => expect(await states()).toEqual({ 'going:s': 'running', 'held:s': 'paused' }));
      expect((await quick.call('POST', '/api/v1/ops/done:s/terminate')).status).toBe(404);
      expect(await check('done')).toMatchObject({ decision: 'DECISION_ALLOW' });
    } finally {
      await quick.stop();
    }
  });
});
