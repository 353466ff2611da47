/** The same id in two orgs: two operations that know nothing of each other (docs/spec.md, Operations). */
import { describe, expect, test } from 'vitest';
import type { CommandOf } from '../../../src/core/commands.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
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
} from '../../support/governor.ts';

const OF_ACME: Principal = { subject: 'key:acme', scopes: ['admin'], orgId: 'acme' };
const OF_GLOBEX: Principal = { subject: 'key:globex', scopes: ['admin'], orgId: 'globex' };

/** Both orgs run `t:1`; the crawler of acme, and the stranger of globex. */
function open() {
  const governor = openGovernor();
  governor.apply<'check'>(checkOf(CRAWLER, 't:1', { resource: 'acme_only' }), 1_000);
  const answer = governor.apply<'check'>(checkOf(STRANGER, 't:1', { resource: 'globex_only' }), 1_000).reply;
  const get = (principal: Principal, orgId?: string) => {
    const { reply } = governor.apply<'get-op'>({ type: 'get-op', principal, opId: opId('t:1'), orgId }, 2_000);
    return reply.ok ? `${reply.value.agent.orgId} ${reply.value.state}` : reply.fault;
  };
  const control = (trigger: CommandOf<'control-op'>['trigger'], principal: Principal, orgId?: string) =>
    governor.apply<'control-op'>({ ...controlOf('t:1', trigger, principal), orgId }, 2_000);
  return { governor, answer, get, control };
}

describe('an id that two orgs use', () => {
  test('blocks neither, and each sees its own', () => {
    const { answer, get } = open();
    expect(answer).toMatchObject({ ok: true, value: { decision: 'allow', opState: 'running' } });
    expect(get(OF_ACME)).toBe('acme running');
    expect(get(OF_GLOBEX)).toBe('globex running');
    expect(get(OF_ACME, 'globex')).toEqual({ kind: 'org_forbidden', orgId: 'globex' });
  });

  test('is ambiguous to a credential of all orgs until it names the org', () => {
    const { get, control } = open();
    const ambiguous = { kind: 'ambiguous', opId: 't:1', orgIds: ['acme', 'globex'] };
    expect(get(ADMIN)).toEqual(ambiguous);
    expect(control('terminate', ADMIN).reply).toEqual({ ok: false, fault: ambiguous });
    expect(control('pause', ADMIN, 'globex').reply.ok).toBe(true);
    expect([get(ADMIN, 'acme'), get(ADMIN, 'globex')]).toEqual(['acme running', 'globex paused']);
    expect(get(ADMIN, 'initech')).toEqual({ kind: 'not_found', what: 'operation t:1' });
    expect(get(ADMIN, '')).toEqual({ kind: 'not_found', what: 'operation t:1' });
  });

  test('tells no org, and no agent, of the other: as if it had never been used', () => {
    const { governor } = open();
    const attempts = (op: string) =>
      [
        governor.apply<'register-op'>(
          { type: 'register-op', principal: OF_GLOBEX, opId: opId(op), agent: STRANGER },
          2_000,
        ),
        governor.apply<'get-op'>({ type: 'get-op', principal: OF_GLOBEX, opId: opId(op) }, 2_000),
        governor.apply<'check'>(checkOf(STRANGER, op), 2_000),
        governor.apply<'complete-op'>(
          {
            type: 'complete-op',
            agent: STRANGER,
            credential: digestOf(STRANGER),
            principal: undefined,
            opId: opId(op),
          },
          2_000,
        ),
      ].map(({ reply, effects }) => JSON.stringify([reply, effects]).replaceAll(op, '<op>'));
    governor.apply<'check'>(checkOf(CRAWLER, 't:used'), 1_000);
    expect(attempts('t:used')).toEqual(attempts('t:free'));
    // Within an org the rule stays.
    expect(governor.apply<'check'>(checkOf(SIBLING, 't:used'), 2_000).reply).toMatchObject({
      value: { decision: 'deny', cause: 'operation_state' },
    });
  });

  test('keeps signals, acknowledgements and completions apart', () => {
    const { governor, control, get } = open();
    const paused = control('pause', OF_GLOBEX);
    for (const effect of paused.effects) if (effect.kind === 'signal') governor.post(effect, 2_000);
    const pending = (agent: typeof CRAWLER) =>
      governor.apply<'open-control'>(
        { type: 'open-control', agent, credential: digestOf(agent), principal: undefined, stream: 1 },
        3_000,
      ).reply;
    expect(pending(CRAWLER)).toEqual({ ok: true, value: { pending: [] } });
    expect(pending(STRANGER)).toMatchObject({ value: { pending: [{ opId: 't:1', signal: 'pause' }] } });
    const acknowledged = governor.apply<'ack-signal'>(
      {
        type: 'ack-signal',
        agent: CRAWLER,
        credential: digestOf(CRAWLER),
        principal: undefined,
        opId: opId('t:1'),
        sequence: 2_000,
      },
      3_000,
    );
    expect(acknowledged.reply).toMatchObject({ ok: false, fault: { kind: 'not_found' } });
    control('complete', OF_ACME);
    expect([get(OF_ACME), get(OF_GLOBEX)]).toEqual(['acme completing', 'globex paused']);
    governor.sweep(1e6);
    expect([get(ADMIN), pending(STRANGER).ok]).toEqual(['globex paused', true]);
  });

  test('rolls back the check of one org without touching the other', () => {
    const { governor, get } = open();
    governor.rollBack([], [checkOf(STRANGER, 't:1')], 1, 2_000);
    expect([get(OF_ACME), get(OF_GLOBEX)]).toEqual(['acme running', 'globex terminated']);
  });
});
