import { describe, expect, test } from 'vitest';
import type { CommandOf, Replies } from '../../../src/core/commands.ts';
import type { Governor } from '../../../src/core/governor.ts';
import { GATEWAY } from '../../../src/core/halts/commands.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
import { ADMIN, CRAWLER, checkOf, openGovernor, opId, SIBLING, STRANGER } from '../../support/governor.ts';

const ACME_ADMIN: Principal = { subject: 'key:acme', scopes: ['admin'], orgId: 'acme' };
const READER: Principal = { subject: 'key:reader', scopes: ['read'], orgId: null };

type Asked = Partial<CommandOf<'create-halt'>['halt']> & { readonly scope: string; readonly principal?: Principal };

function create(governor: Governor, { principal = ADMIN, ...halt }: Asked, nowMs = 1_000) {
  return governor.apply<'create-halt'>(
    {
      type: 'create-halt',
      principal,
      halt: { id: 'h1', mode: 'terminate', actions: ['*'], reason: 'leak', expiresAtMs: undefined, ...halt },
    },
    nowMs,
  );
}

/** All slices of the halt; how many operations it has stopped. */
function enforce(governor: Governor, id = 'h1', most = 2): number {
  let [changed, from]: [number, CommandOf<'enforce-halt'>['from']] = [0, undefined];
  do {
    const reply: Replies['enforce-halt'] = governor.apply<'enforce-halt'>(
      { type: 'enforce-halt', id, from, most },
      2_000,
    ).reply;
    if (!reply.ok) throw new Error(reply.fault.kind);
    changed += reply.value.changed;
    from = reply.value.next;
  } while (from !== undefined);
  return changed;
}

function release(governor: Governor, id = 'h1', principal: Principal = ADMIN): number {
  const { reply } = governor.apply<'release-halt'>({ type: 'release-halt', principal, id, reason: 'over' }, 2_000);
  if (!reply.ok) throw new Error(reply.fault.kind);
  const { halt, paused } = reply.value;
  const resumed = governor.apply<'resume-halted'>(
    { type: 'resume-halted', halt, actor: principal.subject, paused },
    2_000,
  );
  if (!resumed.reply.ok) throw new Error('a resume has no fault');
  return resumed.reply.value.changed;
}

const check = (governor: Governor, agent: typeof CRAWLER, op: string, fields = {}) => {
  const { reply } = governor.apply<'check'>(checkOf(agent, op, fields), 1_500);
  if (!reply.ok) throw new Error(reply.fault.kind);
  return reply.value;
};
const stateOf = (governor: Governor, op: string) => {
  const { reply } = governor.apply<'get-op'>({ type: 'get-op', principal: ADMIN, opId: opId(op) }, 3_000);
  return reply.ok ? reply.value.state : reply.fault.kind;
};

describe('halts', () => {
  test.each([
    ['global', 'deny', 'deny'],
    ['org:acme', 'deny', 'allow'],
    ['team:acme/search', 'deny', 'allow'],
    ['agent:acme/search/crawler', 'deny', 'allow'],
    ['lineage:acme/search/crawler', 'deny', 'allow'],
    ['org:globex', 'allow', 'deny'],
    ['agent:acme/search/nobody', 'allow', 'allow'],
  ])('%s: a check of acme/search/crawler is answered %s, of globex %s', (scope, own, other) => {
    const governor = openGovernor();
    expect(create(governor, { scope }).reply.ok).toBe(true);
    expect({ own: check(governor, CRAWLER, 't:1').decision, other: check(governor, STRANGER, 't:2').decision }).toEqual(
      { own, other },
    );
  });

  test('a denied check begins no operation, and its reason names the halt', () => {
    const governor = openGovernor();
    create(governor, { scope: 'org:acme' });
    expect(check(governor, CRAWLER, 't:1')).toMatchObject({
      decision: 'deny',
      reason: 'halt h1 of org:acme is in force: leak',
    });
    expect(stateOf(governor, 't:1')).toBe('not_found');
  });

  test('dry runs and registrations are stopped too', () => {
    const governor = openGovernor();
    create(governor, { scope: 'org:acme' });
    expect(check(governor, CRAWLER, 't:1', { dryRun: true }).decision).toBe('deny');
    const { reply } = governor.apply<'register-op'>(
      { type: 'register-op', principal: ADMIN, opId: opId('t:1'), agent: CRAWLER },
      1_000,
    );
    expect(reply).toEqual({ ok: false, fault: { kind: 'halted', haltId: 'h1', reason: 'leak' } });
  });

  test('covers only the actions it names', () => {
    const governor = openGovernor();
    create(governor, { scope: 'org:acme', actions: ['process.*'] });
    expect(check(governor, CRAWLER, 't:1', { action: 'process.exec' }).decision).toBe('deny');
    expect(check(governor, CRAWLER, 't:2', { action: 'tool.call' }).decision).toBe('allow');
  });

  test('a lineage covers descendants, also those registered later', () => {
    const governor = openGovernor();
    create(governor, { scope: 'lineage:acme/search/crawler' });
    expect(check(governor, SIBLING, 't:1').decision).toBe('allow');
    governor.apply<'register-agent'>(
      {
        type: 'register-agent',
        principal: ADMIN,
        agent: SIBLING,
        credential: 'digest-of-acme/search/sibling' as never,
        parent: CRAWLER,
      },
      1_200,
    );
    expect(check(governor, SIBLING, 't:2').decision).toBe('deny');
  });

  test('terminate ends what runs, pauses and waits, slice by slice', () => {
    const governor = openGovernor();
    for (const op of ['t:1', 't:2', 't:3']) check(governor, CRAWLER, op);
    check(governor, STRANGER, 't:other');
    governor.apply<'control-op'>({ type: 'control-op', principal: ADMIN, opId: opId('t:2'), trigger: 'pause' }, 1_600);
    create(governor, { scope: 'org:acme' }, 1_700);
    expect(enforce(governor)).toBe(3);
    expect(['t:1', 't:2', 't:3', 't:other'].map((op) => stateOf(governor, op))).toEqual([
      'terminated',
      'terminated',
      'terminated',
      'running',
    ]);
  });

  test('a release resumes what the halt paused, and nothing else', () => {
    const governor = openGovernor();
    for (const op of ['t:1', 't:2']) check(governor, CRAWLER, op);
    governor.apply<'control-op'>({ type: 'control-op', principal: ADMIN, opId: opId('t:2'), trigger: 'pause' }, 1_600);
    create(governor, { scope: 'org:acme', mode: 'pause' }, 1_700);
    expect(enforce(governor)).toBe(1);
    const resume = { type: 'control-op', principal: ADMIN, opId: opId('t:1'), trigger: 'resume' } as const;
    expect(governor.apply<'control-op'>(resume, 1_800).reply).toMatchObject({ fault: { kind: 'halted' } });
    expect(release(governor)).toBe(1);
    expect({ byHalt: stateOf(governor, 't:1'), byHand: stateOf(governor, 't:2') }).toEqual({
      byHalt: 'running',
      byHand: 'paused',
    });
  });

  test('under two halts an operation stays paused until the last is released', () => {
    const governor = openGovernor();
    check(governor, CRAWLER, 't:1');
    create(governor, { scope: 'org:acme', mode: 'pause', id: 'h1' }, 1_700);
    enforce(governor, 'h1');
    create(governor, { scope: 'global', mode: 'pause', id: 'h2' }, 1_800);
    enforce(governor, 'h2');
    expect(release(governor, 'h1')).toBe(0);
    expect(stateOf(governor, 't:1')).toBe('paused');
    expect(release(governor, 'h2')).toBe(1);
    expect(stateOf(governor, 't:1')).toBe('running');
  });

  test('keep an operation paused if one comes between a release and its resuming', () => {
    const governor = openGovernor();
    check(governor, CRAWLER, 't:1');
    create(governor, { scope: 'org:acme', mode: 'pause', id: 'h1' }, 1_700);
    enforce(governor, 'h1');
    const asked = { type: 'release-halt', principal: ADMIN, id: 'h1', reason: 'over' } as const;
    const { reply } = governor.apply<'release-halt'>(asked, 1_800);
    if (!reply.ok) throw new Error(reply.fault.kind);
    create(governor, { scope: 'agent:acme/search/crawler', mode: 'pause', id: 'h2' }, 1_900);
    enforce(governor, 'h2');
    governor.apply<'resume-halted'>({ type: 'resume-halted', actor: 'key:admin', ...reply.value }, 2_000);
    expect(stateOf(governor, 't:1')).toBe('paused');
    expect(release(governor, 'h2')).toBe(1);
    expect(stateOf(governor, 't:1')).toBe('running');
  });

  test('released again, it stays as it was', () => {
    const governor = openGovernor();
    create(governor, { scope: 'org:acme' });
    release(governor);
    const again = governor.apply<'release-halt'>(
      { type: 'release-halt', principal: ADMIN, id: 'h1', reason: 'twice' },
      3_000,
    );
    expect(again.reply).toMatchObject({ ok: true, value: { halt: { released: { atMs: 2_000, reason: 'over' } } } });
    expect(again.effects).toEqual([]);
  });

  test.each([
    ['org:acme', ACME_ADMIN, undefined],
    ['team:acme/search', ACME_ADMIN, undefined],
    ['org:globex', ACME_ADMIN, 'org_forbidden'],
    ['global', ACME_ADMIN, 'org_forbidden'],
    ['org:acme', READER, 'insufficient_scope'],
    ['team:acme', ADMIN, 'invalid_argument'],
    ['lineage:acme/search', ADMIN, 'invalid_argument'],
    ['', ADMIN, 'invalid_argument'],
  ])('halting %s as %o: fault %s', (scope, principal, fault) => {
    const { reply } = create(openGovernor(), { scope, principal });
    expect(reply.ok ? undefined : reply.fault.kind).toBe(fault);
  });

  test('an org admin may release neither the halt of another org nor a global one', () => {
    const governor = openGovernor();
    create(governor, { scope: 'org:globex', id: 'other' });
    create(governor, { scope: 'global', id: 'all' });
    const faultOf = (id: string) => {
      const command = { type: 'release-halt', principal: ACME_ADMIN, id, reason: 'x' } as const;
      const { reply } = governor.apply<'release-halt'>(command, 2_000);
      return reply.ok ? undefined : reply.fault.kind;
    };
    expect({ other: faultOf('other'), all: faultOf('all'), none: faultOf('none') }).toEqual({
      other: 'not_found',
      all: 'org_forbidden',
      none: 'not_found',
    });
  });

  test('a time in the past is refused; a halt whose time is over is found', () => {
    const governor = openGovernor();
    expect(create(governor, { scope: 'global', expiresAtMs: 1_000 }, 1_000).reply.ok).toBe(false);
    create(governor, { scope: 'global', expiresAtMs: 5_000 }, 1_000);
    expect(governor.halts.expiredAt(4_999)).toEqual([]);
    expect(governor.halts.expiredAt(5_000)).toMatchObject([{ id: 'h1' }]);
    expect(release(governor, 'h1', GATEWAY)).toBe(0);
    expect(governor.halts.expiredAt(5_000)).toEqual([]);
  });

  test('a halt that could not be recorded is undone, and so is its release', () => {
    const governor = openGovernor();
    check(governor, CRAWLER, 't:1');
    const { undo } = create(governor, { scope: 'org:acme', mode: 'pause' }, 1_700);
    expect(governor.rollBack([undo!], [], governor.ops.lastNumber, 1_800)).toEqual([
      { kind: 'state-removed', table: 'halts', id: 'h1' },
    ]);
    expect(check(governor, CRAWLER, 't:1').decision).toBe('allow');
    create(governor, { scope: 'org:acme', mode: 'pause' }, 1_900);
    enforce(governor);
    const released = governor.apply<'release-halt'>(
      { type: 'release-halt', principal: ADMIN, id: 'h1', reason: 'over' },
      2_000,
    );
    governor.rollBack([released.undo!], [], governor.ops.lastNumber, 2_100);
    expect(release(governor)).toBe(1);
  });
});
