import { describe, expect, test } from 'vitest';
import { type AgentIdentity, agentKeyOf, type SecretDigest } from '../../src/core/base/ids.ts';
import type { Command, CommandOf } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  controlOf,
  digestOf,
  openGovernor,
  opId,
  SIBLING,
  STRANGER,
  signalOf,
} from '../support/governor.ts';
import { UNCHECKED } from '../support/ops.ts';

const BOUND: Principal = { subject: 'key:globex', scopes: ['write'], orgId: 'globex' };
const stateOf = (governor: Governor, op: string): string | undefined => {
  const slot = governor.ops.find(opId(op), 'acme');
  return slot === undefined ? undefined : governor.ops.stateOf(slot);
};
const complete = (agent: AgentIdentity, op: string): CommandOf<'complete-op'> => ({
  type: 'complete-op',
  agent,
  credential: digestOf(agent),
  principal: undefined,
  opId: opId(op),
});
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
    ['running', [], 'pause', 'paused', 'OpPaused'],
    ['paused', ['pause'], 'resume', 'running', 'OpResumed'],
    ['running', [], 'complete', 'completing', 'OpCompleted'],
    ['running', [], 'terminate', 'terminated', 'OpTerminated'],
    ['paused', ['pause'], 'terminate', 'terminated', 'OpTerminated'],
  ] as const)('%s (after %j): %s makes it %s and is recorded as %s', (_from, way, trigger, to, event) => {
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
    expect(governor.apply<'complete-op'>(complete(CRAWLER, 't:s'), 1).reply).toMatchObject({
      fault: { kind: 'not_found' },
    });
  });

  test('finished operations are swept at their time and not before', () => {
    const governor = openGovernor({ sweepTtlMs: 60_000 });
    for (const op of ['t:1', 't:2']) governor.apply<'check'>(checkOf(CRAWLER, op), 0);
    governor.apply<'complete-op'>(complete(CRAWLER, 't:1'), 1_000);
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
    expect(governor.apply<'complete-op'>(complete(SIBLING, 't:s'), 2).reply).toEqual({
      ok: false,
      fault: { kind: 'not_owner', opId: 't:s' },
    });
    expect(governor.apply<'complete-op'>(complete(STRANGER, 't:s'), 2).reply).toEqual({
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

  describe('state that is dropped', () => {
    const bearer = (agent: AgentIdentity) => ({ agent, credential: undefined, principal: ADMIN });
    const claimed = (n: number): AgentIdentity => ({ orgId: 'acme', teamId: 'search', agentId: `claimed-${n}` });

    test.each([
      ["checks on somebody else's operation", (n: number) => checkOf(claimed(n), 't:s', bearer(claimed(n)))],
      ['dry runs', (n: number) => checkOf(claimed(n), `d:${n}`, { ...bearer(claimed(n)), dryRun: true })],
      [
        'completions of what does not exist',
        (n: number) => ({ ...complete(claimed(n), 'none:s'), ...bearer(claimed(n)) }),
      ],
      [
        "completions of somebody else's operation",
        (n: number) => ({ ...complete(claimed(n), 't:s'), ...bearer(claimed(n)) }),
      ],
      [
        'acknowledgements',
        (n: number) => ({ type: 'ack-signal' as const, ...bearer(claimed(n)), opId: opId('t:s'), sequence: 1 }),
      ],
      ['control streams', (n: number) => ({ type: 'open-control' as const, ...bearer(claimed(n)), stream: n })],
    ])('names claimed in %s', (_what, commandOf) => {
      const governor = openGovernor();
      governor.apply<'check'>(checkOf(CRAWLER, 't:s'), 1);
      const before = governor.agents.knownCount;
      for (let n = 0; n < 100; n += 1) governor.apply(commandOf(n) as never, 2);
      expect(governor.agents.knownCount).toBe(before);
    });

    test('finished operations, a slice at a time where they are many', () => {
      const governor = openGovernor({ maxOps: 10_000, maxOrgOps: 10_000 });
      for (let n = 0; n <= 5_000; n += 1)
        governor.apply<'check'>(checkOf(CRAWLER, `t:${n}`, { resource: 'forbidden' }), 1);
      expect({ sweep: governor.sweep(100_000), opCount: governor.ops.size }).toEqual({ sweep: true, opCount: 1 });
      expect({ sweep: governor.sweep(100_000), opCount: governor.ops.size }).toEqual({ sweep: false, opCount: 0 });
    });

    test('signals of a swept operation, and the times of their acknowledgement', () => {
      const governor = openGovernor();
      const voucher = { agent: CRAWLER, credential: digestOf(CRAWLER), principal: undefined };
      for (const [index, op] of ['t:1', 't:2'].entries()) {
        governor.apply<'check'>(checkOf(CRAWLER, op), 1);
        governor.apply<'control-op'>(controlOf(op, 'terminate'), 10);
        governor.post(signalOf(op, index + 1, 'terminate'), 10);
      }
      governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:2'), sequence: 11 }, 20);
      const pending = () =>
        governor.apply<'open-control'>({ type: 'open-control', ...voucher, stream: 1 }, 100_000).reply;
      expect(pending()).toEqual({ ok: true, value: { pending: [{ opId: 't:1', signal: 'terminate', sequence: 10 }] } });
      governor.sweep(100_000);
      expect(pending()).toEqual({ ok: true, value: { pending: [] } });
      // An operation that comes by that name again has been told nothing yet.
      governor.apply<'check'>(checkOf(CRAWLER, 't:2'), 100_000);
      expect(
        governor.apply<'get-op'>({ type: 'get-op', principal: ADMIN, opId: opId('t:2') }, 100_000).reply,
      ).toMatchObject({ value: { state: 'running', acknowledgedAtMs: undefined } });
      expect(
        governor.apply<'ack-signal'>({ type: 'ack-signal', ...voucher, opId: opId('t:2'), sequence: 11 }, 100_000).reply
          .ok,
      ).toBe(false);
    });

    test('an agent known only by the operations of others, once its last is swept', () => {
      const governor = openGovernor({ agents: [] });
      for (let n = 0; n < 100; n += 1) {
        governor.apply<'check'>(checkOf(claimed(n), `t:${n}`, bearer(claimed(n))), 1);
        governor.apply<'control-op'>(controlOf(`t:${n}`, 'terminate'), 1);
      }
      expect(governor.agents.knownCount).toBe(100);
      governor.sweep(100_000);
      expect({ knownCount: governor.agents.knownCount, opCount: governor.ops.size }).toEqual({
        knownCount: 0,
        opCount: 0,
      });
    });

    test('an org with its teams, once the last operation of its last agent is swept', () => {
      const governor = openGovernor({ agents: [] });
      for (let n = 0; n < 10; n += 1) {
        governor.apply<'check'>(checkOf(claimed(n % 2), `t:${n}`, bearer(claimed(n % 2))), 1);
        governor.apply<'control-op'>(controlOf(`t:${n}`, 'terminate'), n < 9 ? 1 : 50_000);
      }
      const known = () => [
        governor.agents.knownCount,
        [...governor.agents.groups.orgs.after(0)].map(({ orgId, opCount }) => `${opCount} of ${orgId}`),
      ];
      governor.sweep(100_000);
      expect(known()).toEqual([1, ['1 of acme']]);
      governor.sweep(110_000);
      expect(known()).toEqual([0, []]);
    });

    test('the budgets of agents that appear for one operation each, as fast as they come', () => {
      const governor = openGovernor({ agents: [], maxOps: 100_000, maxOrgOps: 100_000 });
      const [perSweep, kept] = [2_000, 7]; // finished operations stay for 60 s, and a sweep comes every 10 s
      for (let round = 0; round < 25; round += 1) {
        const nowMs = round * 10_000;
        for (let n = 0; n < perSweep; n += 1) {
          const [agent, op] = [claimed(n + round * perSweep), `t:${round}-${n}`];
          governor.apply<'check'>(checkOf(agent, op, bearer(agent)), nowMs);
          governor.apply<'control-op'>(controlOf(op, 'complete'), nowMs);
        }
        for (let isMoreLeft = true; isMoreLeft; isMoreLeft = governor.sweep(nowMs));
      }
      expect(governor.ops.size).toBeLessThanOrEqual(perSweep * kept);
      expect(governor.budgets.status({ limit: 1_000_000 }, 250_000).items.length).toBeLessThan(2 * perSweep * kept);
    });
  });

  describe('limits and failures', () => {
    test('a full registry refuses new operations and continues with existing ones', () => {
      const governor = openGovernor({ maxOps: 2 });
      for (const op of ['t:1', 't:2']) governor.apply<'check'>(checkOf(CRAWLER, op), 1);
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:3'), 1).reply).toMatchObject({
        ok: false,
        fault: { kind: 'overloaded' },
      });
      expect(
        governor.apply<'register-op'>({ type: 'register-op', principal: ADMIN, opId: opId('t:3'), agent: CRAWLER }, 1)
          .reply,
      ).toMatchObject({ fault: { kind: 'overloaded' } });
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:1'), 1).reply).toMatchObject({ value: { decision: 'allow' } });
      governor.apply<'complete-op'>(complete(CRAWLER, 't:1'), 1);
      governor.sweep(100_000);
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:3'), 100_000).reply).toMatchObject({
        value: { decision: 'allow' },
      });
    });

    test('an org at its limit of operations is refused more under any name; others are not', () => {
      const governor = openGovernor({ maxOps: 7, maxOrgOps: 2 });
      const register = (op: string, agent: AgentIdentity) =>
        governor.apply<'register-op'>({ type: 'register-op', principal: ADMIN, opId: opId(op), agent }, 1).reply;
      expect(register('t:1', CRAWLER).ok).toBe(true);
      governor.apply<'check'>(checkOf(SIBLING, 't:2'), 1);
      const full = {
        ok: false,
        fault: { kind: 'overloaded', retryAfterSecs: 10, what: 'the number of operations in this org' },
      };
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:3'), 1).reply).toEqual(full);
      expect(register('t:3', { orgId: 'acme', teamId: 'new', agentId: 'unheard-of' })).toEqual(full);
      expect(governor.apply<'check'>(checkOf(STRANGER, 't:3'), 1).reply).toMatchObject({
        value: { decision: 'allow' },
      });
      // Agents of no org are no org.
      for (const op of ['t:4', 't:5', 't:6'])
        expect(register(op, { orgId: '', teamId: 'search', agentId: 'of-no-org' }).ok).toBe(true);
      // Those that have ended are there until they are swept.
      governor.apply<'complete-op'>(complete(SIBLING, 't:2'), 1);
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:7'), 1).reply).toEqual(full);
      governor.apply<'control-op'>(controlOf('t:1', 'terminate'), 1);
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:7'), 1).reply).toEqual(full);
      governor.sweep(100_000);
      expect(governor.apply<'check'>(checkOf(CRAWLER, 't:7'), 100_000).reply).toMatchObject({
        value: { decision: 'allow' },
      });
    });

    test('an org at its limit of agents registers no more, and may still rotate tokens', () => {
      const governor = openGovernor({ maxAgents: 8, maxOrgAgents: 2 });
      const register = (orgId: string, agentId: string, secret = agentId) =>
        governor.apply<'register-agent'>(
          {
            type: 'register-agent',
            principal: ADMIN,
            agent: { orgId, teamId: 'new', agentId },
            credential: secret as SecretDigest,
            parent: undefined,
          },
          1,
        ).reply;
      expect({ okA: register('globex-labs', 'a').ok, okB: register('globex-labs', 'b').ok }).toEqual({
        okA: true,
        okB: true,
      });
      const full = {
        ok: false,
        fault: { kind: 'overloaded', retryAfterSecs: 10, what: 'the number of agents in this org' },
      };
      expect(register('globex-labs', 'c')).toEqual(full);
      expect(register('globex-labs', 'a', 'rotated')).toMatchObject({ ok: true, value: { rotated: true } });
      expect(register('initech', 'd').ok).toBe(true);
      governor.apply<'deregister-agent'>(
        { type: 'deregister-agent', principal: ADMIN, agent: { orgId: 'globex-labs', teamId: 'new', agentId: 'b' } },
        1,
      );
      expect(register('globex-labs', 'c').ok).toBe(true);
    });

    test('a limit of one agent per org works, and agents without an org share no limit', () => {
      const governor = openGovernor({ maxOrgAgents: 1, agents: [] });
      const register = (orgId: string, agentId: string) =>
        governor.apply<'register-agent'>(
          {
            type: 'register-agent',
            principal: ADMIN,
            agent: { orgId, teamId: 'new', agentId },
            credential: `${orgId}-${agentId}` as SecretDigest,
            parent: undefined,
          },
          1,
        ).reply.ok;
      expect([
        register('acme', 'a'),
        register('acme', 'b'),
        register('', 'a'),
        register('', 'b'),
        register('', 'c'),
      ]).toEqual([true, false, true, true, true]);
    });

    test('the registry limit holds for all orgs together', () => {
      const governor = openGovernor({ maxAgents: 5, maxOrgAgents: 5 });
      const orgs = ['one', 'two', '', 'four', 'five', 'six'].map(
        (orgId, at) =>
          governor.apply<'register-agent'>(
            {
              type: 'register-agent',
              principal: ADMIN,
              agent: { orgId, teamId: 'new', agentId: 'a' },
              credential: `secret-${at}` as SecretDigest,
              parent: undefined,
            },
            1,
          ).reply,
      );
      // three are there from the beginning
      expect(orgs.map(({ ok }) => ok)).toEqual([true, true, false, false, false, false]);
      expect(orgs[2]).toEqual({
        ok: false,
        fault: { kind: 'overloaded', retryAfterSecs: 10, what: 'the agent registry' },
      });
    });

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
    const { effects } = governor.apply<'complete-op'>({ ...complete(CRAWLER, 't:s'), ...reported }, 20);
    expect(effects).toMatchObject([{ kind: 'audit', draft: { eventType: 'OpCompleted', opId: 't:s' } }]);
    expect((effects[0] as { readonly draft: { readonly payload?: object } }).draft.payload).toEqual(payload);
  });
});
