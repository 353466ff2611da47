import { describe, expect, test } from 'vitest';
import { type AgentIdentity, agentKeyOf, type SecretDigest } from '../../src/core/base/ids.ts';
import type { Command, CommandOf } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  completionOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  SIBLING,
  STRANGER,
} from '../support/governor.ts';
import { UNCHECKED } from '../support/ops.ts';

const BOUND: Principal = { subject: 'key:globex', scopes: ['write'], orgId: 'globex' };
const stateOf = (governor: Governor, op: string): string | undefined => {
  const slot = governor.ops.find(opId(op), 'acme');
  return slot === undefined ? undefined : governor.ops.stateOf(slot);
};
const events = (
  effects: readonly { readonly kind: string; readonly draft?: { readonly eventType: string } }[],
): string[] => effects.flatMap(({ kind, draft }) => (kind === 'audit' ? [draft!.eventType] : []));

describe('each row of the state table', () => {
  test('ingest registers a pending operation, and a second ingest changes nothing', () => {
    const governor = openGovernor();
    const register: CommandOf<'register-op'> = {
      type: 'register-op',
      principal: ADMIN,
      opId: opId('t:s'),
      agent: CRAWLER,
    };
    const first = governor.apply<'register-op'>(register, 1_000);
    expect(first.reply).toEqual({
      ok: true,
      value: {
        created: true,
        op: {
          ...UNCHECKED,
          opId: 't:s',
          state: 'pending',
          registeredAtMs: 1_000,
          updatedAtMs: 1_000,
          agent: CRAWLER,
          acknowledgedAtMs: undefined,
        },
      },
    });
    expect(events(first.effects as never)).toEqual(['OpRegistered']);
    const again = governor.apply<'register-op'>(register, 2_000);
    expect(again.reply).toMatchObject({ value: { created: false, op: { registeredAtMs: 1_000 } } });
    expect(again.effects).toEqual([]);
    expect(governor.apply<'register-op'>({ ...register, agent: SIBLING }, 2_000).reply).toMatchObject({
      ok: false,
      fault: { kind: 'conflict' },
    });
  });

  test('a check leaves its operation running or terminated', () => {
    const governor = openGovernor();
    expect(governor.apply<'check'>(checkOf(CRAWLER, 't:1'), 1_000).reply).toMatchObject({
      value: { decision: 'allow', opState: 'running' },
    });
    expect(governor.apply<'check'>(checkOf(CRAWLER, 't:2', { resource: 'forbidden' }), 1_000).reply).toMatchObject({
      value: { decision: 'deny', opState: 'terminated' },
    });
    expect([stateOf(governor, 't:1'), stateOf(governor, 't:2')]).toEqual(['running', 'terminated']);
  });

  test.each([
    ['a pause of a running operation', { way: [], trigger: 'pause', to: 'paused', event: 'OpPaused' }],
    ['a resume of a paused operation', { way: ['pause'], trigger: 'resume', to: 'running', event: 'OpResumed' }],
    ['a completion of a running operation', { way: [], trigger: 'complete', to: 'completing', event: 'OpCompleted' }],
    [
      'a termination of a running operation',
      { way: [], trigger: 'terminate', to: 'terminated', event: 'OpTerminated' },
    ],
    [
      'a termination of a paused operation',
      { way: ['pause'], trigger: 'terminate', to: 'terminated', event: 'OpTerminated' },
    ],
  ] as const)('%s changes its state, is recorded and signalled', (_what, { way, trigger, to, event }) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    for (const earlier of way) governor.apply<'control-op'>(controlOf('t:s', earlier), 1_500);
    const moved = governor.apply<'control-op'>(controlOf('t:s', trigger), 2_000);
    expect(moved.reply).toMatchObject({ ok: true, value: { state: to, registeredAtMs: 1_000, updatedAtMs: 2_000 } });
    expect(events(moved.effects as never)).toEqual([event]);
    // The agent is told of what the operator did, not of its own completion.
    expect(moved.effects.filter(({ kind }) => kind === 'signal')).toHaveLength(trigger === 'complete' ? 0 : 1);
  });

  test.each([
    ['running', [], ['resume']],
    ['paused', ['pause'], ['pause', 'complete']],
    ['completing', ['complete'], ['pause', 'resume', 'terminate', 'complete']],
    ['terminated', ['terminate'], ['pause', 'resume', 'complete']],
  ] as const)('%s: a move outside the table is an invalid transition without effect', (from, way, triggers) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    for (const earlier of way) governor.apply<'control-op'>(controlOf('t:s', earlier), 1_500);
    for (const trigger of triggers) {
      expect(governor.apply<'control-op'>(controlOf('t:s', trigger), 2_000)).toEqual({
        reply: { ok: false, fault: { kind: 'invalid_transition', opId: 't:s', from, trigger } },
        effects: [],
      });
    }
    expect(stateOf(governor, 't:s')).toBe(from);
  });

  test('an operator can terminate a pending operation, and no other control applies', () => {
    const governor = openGovernor();
    governor.apply<'register-op'>({ type: 'register-op', principal: ADMIN, opId: opId('t:s'), agent: CRAWLER }, 0);
    for (const trigger of ['pause', 'resume', 'complete'] as const)
      expect(governor.apply<'control-op'>(controlOf('t:s', trigger), 1).reply).toMatchObject({
        fault: { kind: 'invalid_transition', from: 'pending' },
      });
    expect(governor.apply<'control-op'>(controlOf('t:s', 'terminate'), 1).reply).toMatchObject({
      value: { state: 'terminated' },
    });
  });

  test('terminating twice returns the same record, with no entry and no signal', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    governor.apply<'control-op'>(controlOf('t:s', 'terminate'), 2_000);
    expect(governor.apply<'control-op'>(controlOf('t:s', 'terminate'), 3_000)).toMatchObject({
      reply: { ok: true, value: { state: 'terminated', updatedAtMs: 2_000 } },
      effects: [],
    });
  });

  test('an unknown operation is not found by any trigger', () => {
    const governor = openGovernor();
    for (const trigger of ['pause', 'resume', 'terminate', 'complete'] as const)
      expect(governor.apply<'control-op'>(controlOf('t:s', trigger), 1).reply).toEqual({
        ok: false,
        fault: { kind: 'not_found', what: 'operation t:s' },
      });
    expect(governor.apply<'complete-op'>(completionOf(CRAWLER, 't:s'), 1).reply).toMatchObject({
      fault: { kind: 'not_found' },
    });
  });

  test('finished operations are swept at their time and not before', () => {
    const governor = openGovernor({ sweepTtlMs: 60_000 });
    for (const op of ['t:1', 't:2']) governor.apply<'check'>(checkOf(CRAWLER, op), 0);
    governor.apply<'complete-op'>(completionOf(CRAWLER, 't:1'), 1_000);
    governor.sweep(60_999);
    expect(stateOf(governor, 't:1')).toBe('completing');
    governor.sweep(61_000);
    expect([stateOf(governor, 't:1'), stateOf(governor, 't:2')]).toEqual([undefined, 'running']);
  });
});

describe('ownership of operations', () => {
  test('another agent of the org is refused; one of another org gets not found', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    expect(governor.apply<'complete-op'>(completionOf(SIBLING, 't:s'), 2).reply).toEqual({
      ok: false,
      fault: { kind: 'not_owner', opId: 't:s' },
    });
    expect(governor.apply<'complete-op'>(completionOf(STRANGER, 't:s'), 2).reply).toEqual({
      ok: false,
      fault: { kind: 'not_found', what: 'operation t:s' },
    });
    expect(stateOf(governor, 't:s')).toBe('running');
  });

  test("refuses and records a control stream for an agent other than the token's", () => {
    const governor = openGovernor();
    const { reply, effects } = governor.apply<'open-control'>(
      { type: 'open-control', agent: STRANGER, credential: digestOf(CRAWLER), principal: undefined, stream: 1 },
      1,
    );
    expect(reply).toEqual({ ok: false, fault: { kind: 'impersonation' } });
    expect(effects).toMatchObject([
      {
        kind: 'audit',
        draft: {
          eventType: 'A2AImpersonationAttempted',
          lineage: CRAWLER,
          decision: 'deny',
          payload: { method: 'OpControlStream', claimed_org_id: STRANGER.orgId },
        },
      },
      { kind: 'violation', agent: CRAWLER, claimed: STRANGER, action: 'OpControlStream' },
    ]);
  });

  test('a credential of one org sees and moves nothing of another', () => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    expect(governor.apply<'control-op'>(controlOf('t:s', 'terminate', BOUND), 2).reply).toMatchObject({
      fault: { kind: 'not_found' },
    });
    expect(governor.apply<'get-op'>({ type: 'get-op', principal: BOUND, opId: opId('t:s') }, 2).reply).toMatchObject({
      fault: { kind: 'not_found' },
    });
    expect(
      governor.apply<'list-ops'>(
        { type: 'list-ops', principal: BOUND, orgId: undefined, perPage: 10, cursor: undefined },
        2,
      ).reply,
    ).toEqual({ ok: true, value: { items: [], next: undefined } });
    expect(
      governor.apply<'list-ops'>(
        { type: 'list-ops', principal: BOUND, orgId: 'acme', perPage: 10, cursor: undefined },
        2,
      ).reply,
    ).toMatchObject({ fault: { kind: 'org_forbidden' } });
    expect(
      governor.apply<'register-op'>({ type: 'register-op', principal: BOUND, opId: opId('t:2'), agent: CRAWLER }, 2)
        .reply,
    ).toMatchObject({ fault: { kind: 'org_forbidden' } });
    expect(
      governor.apply<'register-agent'>(
        { type: 'register-agent', principal: BOUND, agent: CRAWLER, credential: 'stolen' as never, parent: undefined },
        2,
      ),
    ).toEqual({ reply: { ok: false, fault: { kind: 'org_forbidden', orgId: 'acme' } }, effects: [] });
    expect(
      governor.apply<'deregister-agent'>({ type: 'deregister-agent', principal: BOUND, agent: CRAWLER }, 2),
    ).toEqual({ reply: { ok: false, fault: { kind: 'not_found', what: 'agent acme/search/crawler' } }, effects: [] });
    expect(
      governor.apply<'list-agents'>(
        { type: 'list-agents', principal: BOUND, orgId: 'acme', teamId: undefined, perPage: 10, cursor: undefined },
        2,
      ).reply,
    ).toMatchObject({ fault: { kind: 'org_forbidden' } });
    expect(
      governor.apply<'list-budgets'>(
        { type: 'list-budgets', principal: BOUND, orgId: 'acme', perPage: 10, cursor: undefined },
        2,
      ).reply,
    ).toMatchObject({ fault: { kind: 'org_forbidden' } });
    expect(governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 3).reply).toMatchObject({ value: { decision: 'allow' } });
    expect(stateOf(governor, 't:s')).toBe('running');
  });
});

describe('calls of an agent', () => {
  const calls = [
    ['CompleteOp', { type: 'complete-op', opId: opId('t:s') }],
    ['RecordUsage', { type: 'record-usage', costMicroUsd: 1, opId: opId('t:s'), usageId: undefined }],
    ['OpControlStream', { type: 'open-control', stream: 1 }],
    ['AckOpControl', { type: 'ack-signal', opId: opId('t:s'), sequence: 1 }],
  ] as const;

  test.each(calls)('%s is refused for anyone but the agent and those who may act for it', (method, call) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
    const ask = (voucher: object) =>
      governor.apply(
        { ...call, agent: CRAWLER, credential: undefined, principal: undefined, ...voucher } as never,
        2,
      ) as unknown as { readonly reply: object; readonly effects: readonly object[] };
    expect(ask({})).toEqual({
      reply: {
        ok: false,
        fault: {
          kind: 'unauthenticated',
          detail: 'no credential token presented; register the agent and send its token',
        },
      },
      effects: [],
    });
    expect(ask({ credential: 'unknown' })).toEqual({
      reply: {
        ok: false,
        fault: {
          kind: 'unauthenticated',
          detail: 'the credential token is not registered; register the agent again to get a new one',
        },
      },
      effects: [],
    });
    expect(ask({ principal: BOUND })).toEqual({
      reply: { ok: false, fault: { kind: 'org_forbidden', orgId: 'acme' } },
      effects: [],
    });
    expect(ask({ credential: digestOf(SIBLING), principal: ADMIN })).toMatchObject({
      reply: { ok: false, fault: { kind: 'impersonation' } },
      effects: [
        { kind: 'audit', draft: { eventType: 'A2AImpersonationAttempted', lineage: SIBLING, payload: { method } } },
        { kind: 'violation', agent: SIBLING, claimed: CRAWLER, action: method },
      ],
    });
    expect(stateOf(governor, 't:s')).toBe('running');
  });

  test.each(calls)('%s marks the agent as seen, unless another credential acts for it', (_method, call) => {
    const governor = openGovernor();
    const listed = () =>
      governor.apply<'list-agents'>(
        { type: 'list-agents', principal: ADMIN, orgId: 'acme', agentId: 'crawler', perPage: 1, cursor: undefined },
        70_000,
      ).reply;
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1_000);
    governor.apply({ ...call, agent: CRAWLER, credential: undefined, principal: ADMIN } as never, 30_000);
    expect(listed()).toMatchObject({ value: { items: [{ lastSeenMs: 1_000 }] } });
    governor.apply({ ...call, agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined } as never, 60_000);
    expect(listed()).toMatchObject({ value: { items: [{ lastSeenMs: 60_000 }] } });
  });
});

describe('governor', () => {
  test('budget pages list each budget once, within the org, and check their cursor', () => {
    const governor = openGovernor();
    for (const agent of [CRAWLER, STRANGER]) {
      governor.apply<'record-usage'>(
        {
          type: 'record-usage',
          agent,
          credential: digestOf(agent),
          principal: undefined,
          costMicroUsd: 1,
          opId: undefined,
          usageId: undefined,
        },
        1,
      );
    }
    const page = (principal: Principal, cursor: string | undefined) =>
      governor.apply<'list-budgets'>({ type: 'list-budgets', principal, orgId: undefined, perPage: 2, cursor }, 2)
        .reply;
    const pages = (principal: Principal): string[] => {
      const seen: string[] = [];
      for (let cursor: string | undefined, more = true; more && seen.length < 10; more = cursor !== undefined) {
        const reply = page(principal, cursor);
        if (!reply.ok) return [reply.fault.kind];
        seen.push(reply.value.items.map(({ tier, orgId }) => `${tier} of ${orgId}`).join(', '));
        cursor = reply.value.next;
      }
      return seen;
    };
    expect(pages(ADMIN)).toEqual([
      'global of null, org of acme',
      'org of globex, team of acme',
      'team of globex, agent of acme',
      'agent of globex',
    ]);
    expect(pages(BOUND)).toEqual(['org of globex, team of globex', 'agent of globex']);
    expect(page(ADMIN, 'one.two')).toMatchObject({ fault: { kind: 'invalid_argument', field: 'cursor' } });
  });

  describe('agents and failures', () => {
    test('rolls back an allow that could not be recorded, and no older operation', () => {
      const governor = openGovernor();
      governor.apply<'check'>(checkOf(CRAWLER, 't:old'), 1_000);
      const since = governor.ops.lastNumber;
      governor.apply<'check'>(checkOf(CRAWLER, 't:new'), 2_000);
      governor.rollBack(
        [],
        [checkOf(CRAWLER, 't:old'), checkOf(CRAWLER, 't:new'), checkOf(CRAWLER, 't:gone')],
        since,
        2_500,
      );
      expect({ stateOld: stateOf(governor, 't:old'), stateNew: stateOf(governor, 't:new') }).toEqual({
        stateOld: 'running',
        stateNew: 'terminated',
      });
    });

    test('a parent must be a registered agent of the org and no descendant', () => {
      const governor = openGovernor();
      const register = (agent: AgentIdentity, parent: AgentIdentity) =>
        governor.apply<'register-agent'>(
          { type: 'register-agent', principal: ADMIN, agent, credential: digestOf(agent), parent },
          1,
        ).reply;
      expect(register(SIBLING, CRAWLER)).toMatchObject({ ok: true });
      expect(register(CRAWLER, SIBLING)).toMatchObject({
        fault: { kind: 'invalid_argument', field: 'parent', problem: 'an agent cannot descend from itself' },
      });
      expect(register(SIBLING, STRANGER)).toMatchObject({ fault: { field: 'parent' } });
      expect(register(SIBLING, { ...CRAWLER, agentId: 'nobody' })).toMatchObject({ fault: { field: 'parent' } });
    });

    test('an agent has at most a thousand ancestors, so that registration stays quick', () => {
      const governor = openGovernor({ agents: [], maxAgents: 5_000, maxOrgAgents: 5_000 });
      const named = (chain: string, n: number): AgentIdentity => ({ ...CRAWLER, agentId: `${chain}${n}` });
      const register = (agent: AgentIdentity, parent: AgentIdentity | undefined) =>
        governor.apply<'register-agent'>(
          { type: 'register-agent', principal: ADMIN, agent, credential: digestOf(agent), parent },
          1,
        ).reply;
      for (const chain of ['a', 'b'])
        for (let n = 0; n <= 1_000; n += 1)
          expect(register(named(chain, n), n === 0 ? undefined : named(chain, n - 1)).ok).toBe(true);
      const tooMany = (of: string) => ({
        ok: false,
        fault: {
          kind: 'invalid_argument',
          field: 'parent',
          problem: `agent acme/search/${of} has too many ancestors; the maximum is 1000`,
        },
      });
      expect(register(named('a', 1_001), named('a', 1_000))).toEqual(tooMany('a1000'));
      // Two chains may become one, which nobody makes longer then.
      expect(register(named('b', 0), named('a', 999)).ok).toBe(true);
      expect(register(named('b', 1_001), named('b', 999))).toEqual(tooMany('b999'));
      expect(register(named('b', 1_001), undefined).ok).toBe(true);
    });

    test('refuses a token that another agent holds without revealing whose it is', () => {
      const governor = openGovernor();
      const reply = governor.apply<'register-agent'>(
        {
          type: 'register-agent',
          principal: ADMIN,
          agent: { ...CRAWLER, agentId: 'thief' },
          credential: digestOf(STRANGER),
          parent: undefined,
        },
        1,
      ).reply;
      expect(reply).toMatchObject({ fault: { kind: 'conflict' } });
      expect(JSON.stringify(reply)).not.toMatch(/globex/);
      expect(governor.agents.registeredCount).toBe(3);
    });

    test('after a rotation only the new token is known', () => {
      const governor = openGovernor();
      const fresh = 'digest-of-a-fresh-token' as never;
      expect(
        governor.apply<'register-agent'>(
          { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential: fresh, parent: undefined },
          1,
        ).reply,
      ).toMatchObject({ value: { rotated: true, agent: { registeredAtMs: 0 } } });
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:1'), 2).reply).toMatchObject({
        value: {
          decision: 'deny',
          reason: 'the credential token is not registered; register the agent again to get a new one',
        },
      });
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:1', { credential: fresh }), 2).reply).toMatchObject({
        value: { decision: 'allow' },
      });
    });

    test("asking whether a credential is an agent's leaves no record", () => {
      const governor = openGovernor();
      const ask = (agent: AgentIdentity, credential: SecretDigest) =>
        governor.apply<'recognize-agent'>({ type: 'recognize-agent', agent, credential }, 1);
      expect(ask(CRAWLER, digestOf(CRAWLER))).toEqual({ reply: { ok: true, value: { isIts: true } }, effects: [] });
      for (const other of [digestOf(SIBLING), digestOf(STRANGER), 'of nobody' as SecretDigest])
        expect(ask(CRAWLER, other)).toEqual({ reply: { ok: true, value: { isIts: false } }, effects: [] });
    });

    test('finds the agent of a credential, and none for a credential that was replaced', () => {
      const governor = openGovernor();
      const find = (credential: SecretDigest) => governor.apply<'find-agent'>({ type: 'find-agent', credential }, 1);
      expect(find(digestOf(CRAWLER))).toEqual({ reply: { ok: true, value: { agent: CRAWLER } }, effects: [] });
      const credential = 'a fresh one' as SecretDigest;
      governor.apply<'register-agent'>(
        { type: 'register-agent', principal: ADMIN, agent: CRAWLER, credential, parent: undefined },
        2,
      );
      expect(find(digestOf(CRAWLER))).toEqual({ reply: { ok: true, value: { agent: undefined } }, effects: [] });
    });

    test('lists agents in order of registration, without deregistered ones', () => {
      const governor = openGovernor();
      const list = (perPage: number, cursor?: string) => {
        const { reply } = governor.apply<'list-agents'>(
          { type: 'list-agents', principal: ADMIN, orgId: undefined, perPage, cursor },
          1,
        );
        return reply.ok
          ? { names: reply.value.items.map(({ identity }) => agentKeyOf(identity)), next: reply.value.next }
          : reply.fault;
      };
      expect(list(2)).toEqual({ names: ['acme/search/crawler', 'acme/search/sibling'], next: '2' });
      expect(list(2, '2')).toEqual({ names: ['globex/search/crawler'], next: undefined });
      const deregister = () =>
        governor.apply<'deregister-agent'>({ type: 'deregister-agent', principal: ADMIN, agent: SIBLING }, 1).reply;
      expect([deregister(), deregister()]).toEqual([
        { ok: true, value: undefined },
        { ok: false, fault: { kind: 'not_found', what: 'agent acme/search/sibling' } },
      ]);
      expect(list(3)).toEqual({ names: ['acme/search/crawler', 'globex/search/crawler'], next: undefined });
    });

    const topology = (type: string, cursor: string, more: object = {}): Command =>
      ({ type: `topology-${type}`, principal: ADMIN, orgId: undefined, perPage: 10, cursor, ...more }) as Command;
    test.each<[string, string, (cursor: string) => Command]>([
      [
        'operations',
        '1.5',
        (cursor) => ({ type: 'list-ops', principal: ADMIN, orgId: undefined, perPage: 10, cursor }),
      ],
      ['agents', '1.5', (cursor) => ({ type: 'list-agents', principal: ADMIN, orgId: undefined, perPage: 10, cursor })],
      ['the overview', '15', (cursor) => topology('overview', cursor)],
      ['the tree', '15', (cursor) => topology('tree', cursor)],
      ['the numbers', '1.5', (cursor) => topology('stats', cursor)],
      ['a team', '15', (cursor) => topology('team', cursor, { teamId: 'search' })],
      ['the lineages of a name', '1.5', (cursor) => topology('lineage', cursor, { agentId: 'crawler' })],
    ])('refuses a cursor that no listing of %s gave out', (_listing, ofAnother, command) => {
      const governor = openGovernor();
      for (const cursor of [ofAnother, '-1', 'x', '1.5.', '1e3', '99999999999', ''])
        expect(governor.apply(command(cursor), 1).reply).toMatchObject({ ok: false, fault: { field: 'cursor' } });
    });

    test.each([
      ['team', 'teamId', 'search', '99.1'],
      ['lineage', 'agentId', 'crawler', '99'],
    ])(
      '%s of an unreachable name is not found, and paging ends when the last are gone',
      (view, field, name, cursor) => {
        const governor = openGovernor();
        const ask = (named: string, more: object = {}) =>
          governor.apply({ ...topology(view, '', { [field]: named }), cursor: undefined, ...more } as Command, 1).reply;
        const missing = (named: string) => ({
          ok: false,
          fault: { kind: 'not_found', what: `${view === 'team' ? 'team' : 'agent'} ${named}` },
        });
        expect(ask(name)).toMatchObject({ ok: true });
        expect({ askNobody: ask('nobody'), ask: ask(name, { orgId: 'nowhere' }) }).toEqual({
          askNobody: missing('nobody'),
          ask: missing(name),
        });
        expect(ask(name, { cursor })).toMatchObject({
          ok: true,
          value: { [view === 'team' ? 'agents' : 'lineages']: [], next: undefined },
        });
        expect(ask(name, { principal: { ...ADMIN, orgId: 'acme' }, orgId: 'globex' })).toEqual({
          ok: false,
          fault: { kind: 'org_forbidden', orgId: 'globex' },
        });
      },
    );
  });
});

describe('a completion', () => {
  test.each([
    ['success', { outcome: 'success' }, { outcome: 'success' }],
    [
      'failure',
      { outcome: 'failure', error: 'GET https://ada:hunter2@example.com timed out' },
      { outcome: 'failure', error: 'GET https://ada:[redacted]@example.com timed out' },
    ],
    ['no outcome', {}, undefined],
  ] as const)('with %s is recorded as its agent reports it', (_what, reported, payload) => {
    const governor = openGovernor();
    governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 10);
    const { effects } = governor.apply<'complete-op'>({ ...completionOf(CRAWLER, 't:s'), ...reported }, 20);
    expect(effects).toMatchObject([{ kind: 'audit', draft: { eventType: 'OpCompleted', opId: 't:s' } }]);
    expect((effects[0] as { readonly draft: { readonly payload?: object } }).draft.payload).toEqual(payload);
  });
});
