import { describe, expect, test } from 'vitest';
import { orgInReach, refuseUnlessAdminOfAll } from '../../../src/core/identity/access.ts';
import { holds, type Principal, ROLES, SCOPES, SCOPES_OF_ROLE } from '../../../src/core/identity/roles.ts';

const of = (scopes: Principal['scopes'], orgId: string | null = null): Principal => ({
  subject: 'key:k',
  scopes,
  orgId,
});

describe('scope', () => {
  test('each scope implies the ones before it, whatever else the credential holds', () => {
    const allowed = (scopes: Principal['scopes']) => SCOPES.filter((needed) => holds(scopes, needed)).join();
    expect(
      [[], ['read'], ['write'], ['admin'], ['read', 'write'], ['admin', 'read']].map((scopes) =>
        allowed(scopes as Principal['scopes']),
      ),
    ).toEqual(['', 'read', 'read,write', 'read,write,admin', 'read,write', 'read,write,admin']);
    expect(ROLES.map((role) => `${role}: ${allowed(SCOPES_OF_ROLE[role])}`)).toEqual([
      'owner: read,write,admin',
      'admin: read,write,admin',
      'developer: read,write',
      'viewer: read',
    ]);
  });

  test('a role lists every scope that it has, not the highest alone', () => {
    expect(SCOPES_OF_ROLE).toEqual({
      owner: ['read', 'write', 'admin'],
      admin: ['read', 'write', 'admin'],
      developer: ['read', 'write'],
      viewer: ['read'],
    });
  });

  test('allows changes for every org to an admin of all orgs only', () => {
    expect(refuseUnlessAdminOfAll(of(['admin']))).toBeUndefined();
    expect(refuseUnlessAdminOfAll(of(['admin'], 'acme'))).toEqual({
      ok: false,
      fault: { kind: 'org_forbidden', orgId: undefined },
    });
    expect(refuseUnlessAdminOfAll(of(['write']))).toEqual({
      ok: false,
      fault: { kind: 'insufficient_scope', needed: 'admin', held: ['write'] },
    });
  });

  test('an org credential lists its own org; others list the one they ask for, or all', () => {
    const reach = (orgId: string | null, asked: string | undefined) => orgInReach(of(['read'], orgId), asked);
    expect([reach(null, undefined), reach(null, 'acme'), reach('acme', undefined), reach('acme', 'acme')]).toEqual(
      [undefined, 'acme', 'acme', 'acme'].map((value) => ({ ok: true, value })),
    );
    for (const asked of ['globex', '', 'Acme'])
      expect(reach('acme', asked)).toEqual({ ok: false, fault: { kind: 'org_forbidden', orgId: asked } });
  });
});
