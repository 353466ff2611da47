import { describe, expect, test } from 'vitest';
import type { AgentIdentity, SecretDigest } from '../../src/core/base/ids.ts';
import {
  ADMIN,
  CRAWLER,
  checkOf,
  completionOf,
  controlOf,
  openGovernor,
  opId,
  SIBLING,
  STRANGER,
} from '../support/governor.ts';

describe('limits', () => {
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
    governor.apply<'complete-op'>(completionOf(CRAWLER, 't:1'), 1);
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
    // Ended operations count until they are swept.
    governor.apply<'complete-op'>(completionOf(SIBLING, 't:2'), 1);
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
});
