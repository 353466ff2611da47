/** Requests for a stream, and the part of it that each credential is shown. */
import { describe, expect, test } from 'vitest';
import type { Principal } from '../../../src/core/identity/roles.ts';
import { interestOf, readStreamQuery, type StreamQuery } from '../../../src/doors/ws/stream.ts';

const asked = (query: string) => readStreamQuery(new URLSearchParams(query));
const ALL: StreamQuery = { orgId: undefined, kinds: undefined, snapshot: false, lineage: false };
const kindsOf = (kinds: ReadonlySet<string> | undefined): readonly string[] => [...(kinds ?? [])].sort();

describe('admission', () => {
  test.each<[string, StreamQuery]>([
    ['', ALL],
    ['snapshot=true', { ...ALL, snapshot: true }],
    ['snapshot=false&lineage=true', { ...ALL, lineage: true }],
    ['snapshot=&types=', ALL],
    ['org_id=acme', { ...ALL, orgId: 'acme' }],
    ['types=violation, ops_change,', { ...ALL, kinds: new Set(['violation', 'ops_change']) }],
  ])('a stream requested with ?%s is that', (query, expected) => {
    expect(asked(query)).toEqual({ ok: true, value: expected });
  });

  test.each([
    ['org_id=', 'org_id'],
    ['org_id=a/b', 'org_id'],
    ['org_id=-', 'org_id'],
    ['snapshot=yes', 'snapshot'],
    ['snapshot=1', 'snapshot'],
    ['lineage=TRUE', 'lineage'],
    ['types=ops', 'types'],
    ['types=violation,Budget', 'types'],
    ['types=violation&types=budget', 'types'],
    ['org_id=acme&org_id=globex', 'org_id'],
    ['snapshot=true&snapshot=true', 'snapshot'],
  ])('a stream requested with ?%s is refused by name', (query, field) => {
    expect(asked(query)).toMatchObject({ ok: false, fault: { kind: 'invalid_argument', field } });
  });

  const principal = (scope: 'read' | 'write' | 'admin', orgId: string | null): Principal => ({
    subject: 'key:k',
    scopes: [scope],
    orgId,
  });
  const shown = (who: Principal, query: Partial<StreamQuery> = {}) => {
    const interest = interestOf(who, { ...ALL, ...query });
    return interest.ok ? [interest.value.orgId, kindsOf(interest.value.kinds)] : interest.fault;
  };
  const FOR_READERS = ['agent', 'approval', 'budget', 'halt', 'limit', 'ops_change', 'policy', 'violation'];

  test('a credential of one org sees that org, requested or not, and no other', () => {
    expect(shown(principal('read', 'acme'))).toEqual(['acme', FOR_READERS]);
    expect(shown(principal('read', 'acme'), { orgId: 'acme' })).toEqual(['acme', FOR_READERS]);
    expect(shown(principal('admin', 'acme'), { orgId: 'globex' })).toEqual({ kind: 'org_forbidden', orgId: 'globex' });
  });

  test('a credential of no org sees every org, or the one it requests', () => {
    expect(shown(principal('write', null))).toEqual([null, FOR_READERS]);
    expect(shown(principal('write', null), { orgId: 'globex' })).toEqual(['globex', FOR_READERS]);
  });

  test('account events are for administrators only, and others are refused', () => {
    expect(shown(principal('admin', null))).toEqual([null, ['account', ...FOR_READERS]]);
    expect(shown(principal('admin', 'acme'), { kinds: new Set(['account']) })).toEqual(['acme', ['account']]);
    expect(shown(principal('write', null), { kinds: new Set(['account', 'budget']) })).toEqual({
      kind: 'insufficient_scope',
      needed: 'admin',
      held: ['write'],
    });
    expect(shown(principal('write', null), { kinds: new Set(['budget']) })).toEqual([null, ['budget']]);
  });

  test('a credential without read scope sees nothing', () => {
    expect(shown({ subject: 'key:k', scopes: [], orgId: null })).toEqual({
      kind: 'insufficient_scope',
      needed: 'read',
      held: [],
    });
  });
});
