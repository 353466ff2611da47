import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import {
  ADMIN_KEY,
  eventTypes,
  GOOD_PASSWORD,
  inviteAccount,
  openScene,
  principalOf,
  registerOwner,
  signIn,
  valueOf,
} from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';

const newDatabase = withTables();
const DAY_MS = 24 * 3_600_000;
const INVALID = fail({ kind: 'invalid_invite' });

describe('invites', () => {
  test('an invite creates one account with the role and org it names', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const made = valueOf(
      await scene.invite({ principal: principalOf(owner), email: 'dev@example.com', role: 'developer', orgId: 'acme' }),
    );
    expect(made).toEqual({
      inviteToken: expect.stringMatching(/^[\w-]{43}$/),
      email: 'dev@example.com',
      role: 'developer',
      orgId: 'acme',
      expiresAtMs: 1_893_456_000_000 + 7 * DAY_MS,
    });
    const account = valueOf(await scene.acceptInvite({ inviteToken: made.inviteToken, password: GOOD_PASSWORD }));
    expect(account).toMatchObject({ email: 'dev@example.com', role: 'developer', orgId: 'acme' });
    expect(scene.events.at(-1)).toEqual({
      change: 'registered',
      accountId: account.id,
      email: 'dev@example.com',
      role: 'developer',
      orgId: 'acme',
      atMs: 1_893_456_000_000,
    });
    expect((await signIn(scene, 'dev@example.com')).ok).toBe(true);
    expect(await scene.acceptInvite({ inviteToken: made.inviteToken, password: GOOD_PASSWORD })).toEqual(INVALID);
    expect(eventTypes(scene)).toEqual(['AccountRegistered', 'InviteCreated', 'InviteAccepted', 'LoginSucceeded']);
    expect(JSON.stringify([scene.audit, scene.events])).not.toContain(made.inviteToken);
  });

  test('no invite is created, accepted or revoked that the audit log cannot record', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const asked = { principal: ADMIN_KEY, email: 'dev@example.com', role: 'viewer', orgId: undefined } as const;
    const { inviteToken } = valueOf(await scene.invite(asked));
    const open = async () =>
      valueOf(await scene.listInvites({ principal: ADMIN_KEY, orgId: undefined, perPage: 50, cursor: undefined }))
        .items;
    const [first] = await open();
    const unlogged = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    const refused = [
      await unlogged.invite(asked),
      await unlogged.acceptInvite({ inviteToken, password: GOOD_PASSWORD }),
      await unlogged.revokeInvite({ principal: ADMIN_KEY, inviteId: first!.id }),
    ];
    expect(refused).toEqual([1, 2, 3].map(() => fail({ kind: 'audit_unavailable' })));
    expect({ open: await open(), events: unlogged.events }).toEqual({ open: [first], events: [] });
    expect((await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).ok).toBe(true);
  });

  test('let one of ten concurrent accepts win', async () => {
    const scene = await openScene(await newDatabase());
    const { inviteToken } = valueOf(
      await scene.invite({ principal: ADMIN_KEY, email: 'dev@example.com', role: 'viewer', orgId: undefined }),
    );
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })),
    );
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
    expect(answers.filter((answer) => !answer.ok)).toEqual(Array.from({ length: 9 }, () => INVALID));
  });

  test('an invite ends after seven days and survives a weak password', async () => {
    const scene = await openScene(await newDatabase());
    const { inviteToken } = valueOf(
      await scene.invite({ principal: ADMIN_KEY, email: 'dev@example.com', role: 'viewer', orgId: undefined }),
    );
    scene.advance(7 * DAY_MS - 1);
    expect(await scene.acceptInvite({ inviteToken, password: 'short' })).toMatchObject({
      fault: { kind: 'weak_password' },
    });
    scene.advance(1);
    expect(await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).toEqual(INVALID);
    expect(await scene.acceptInvite({ inviteToken: 'nonsense', password: GOOD_PASSWORD })).toEqual(INVALID);
  });

  test('nobody grants a right they lack', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const admin = await inviteAccount(scene, 'admin@example.com', 'admin');
    const orgAdmin = await inviteAccount(scene, 'acme-admin@example.com', 'admin', 'acme');
    const developer = await inviteAccount(scene, 'dev@example.com', 'developer');
    const ask = (inviter: typeof owner, role: 'owner' | 'admin' | 'viewer', orgId?: string) =>
      scene.invite({ principal: principalOf(inviter), email: 'new@example.com', role, orgId });

    expect(await ask(developer, 'viewer')).toEqual(
      fail({ kind: 'insufficient_scope', needed: 'admin', held: ['read', 'write'] }),
    );
    expect(await ask(admin, 'owner')).toEqual(fail({ kind: 'role_forbidden', role: 'owner' }));
    expect(
      await scene.invite({ principal: ADMIN_KEY, email: 'new@example.com', role: 'owner', orgId: undefined }),
    ).toEqual(fail({ kind: 'role_forbidden', role: 'owner' }));
    expect(valueOf(await ask(owner, 'owner')).role).toBe('owner');
    expect(await ask(owner, 'owner', 'acme')).toMatchObject({ fault: { kind: 'invalid_argument', field: 'org_id' } });
    expect(await ask(orgAdmin, 'viewer', 'rival')).toEqual(fail({ kind: 'org_forbidden', orgId: 'rival' }));
    expect(valueOf(await ask(orgAdmin, 'admin')).orgId).toBe('acme');
  });

  test('an earlier invite does not let in who was disabled, demoted or lost their key', async () => {
    const scene = await openScene(await newDatabase());
    const owner = principalOf(await registerOwner(scene));
    const admin = await inviteAccount(scene, 'admin@example.com', 'admin');
    const { inviteToken } = valueOf(
      await scene.invite({
        principal: principalOf(admin),
        email: 'again@example.com',
        role: 'admin',
        orgId: undefined,
      }),
    );
    const { inviteToken: ofViewer } = valueOf(
      await scene.invite({
        principal: principalOf(admin),
        email: 'viewer@example.com',
        role: 'viewer',
        orgId: undefined,
      }),
    );
    const ofKey = valueOf(
      await scene.invite({ principal: ADMIN_KEY, email: 'later@example.com', role: 'admin', orgId: undefined }),
    );
    const accept = (token: string) => scene.acceptInvite({ inviteToken: token, password: GOOD_PASSWORD });

    valueOf(await scene.setDisabled({ principal: owner, accountId: admin.id, disabled: true }));
    expect(await accept(inviteToken)).toEqual(INVALID);
    valueOf(await scene.setDisabled({ principal: owner, accountId: admin.id, disabled: false }));
    valueOf(await scene.changeRole({ principal: owner, accountId: admin.id, role: 'developer' }));
    for (const token of [inviteToken, ofViewer]) expect(await accept(token)).toEqual(INVALID);
    valueOf(await scene.changeRole({ principal: owner, accountId: admin.id, role: 'admin' }));
    expect((await accept(inviteToken)).ok).toBe(true);

    // A former owner makes no owner, though an admin may still invite.
    const second = valueOf(
      await accept(
        valueOf(await scene.invite({ principal: owner, email: 'second@example.com', role: 'owner', orgId: undefined }))
          .inviteToken,
      ),
    );
    const ofOwner = valueOf(
      await scene.invite({
        principal: principalOf(second),
        email: 'third@example.com',
        role: 'owner',
        orgId: undefined,
      }),
    );
    valueOf(await scene.changeRole({ principal: owner, accountId: second.id, role: 'admin' }));
    expect(await accept(ofOwner.inviteToken)).toEqual(INVALID);

    scene.revokedKeys.add('key:k1');
    expect(await accept(ofKey.inviteToken)).toEqual(INVALID);
  });

  test('an address that has an account is not invited', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const invitation = { principal: ADMIN_KEY, role: 'viewer', orgId: undefined } as const;
    expect(await scene.invite({ ...invitation, email: 'OWNER@example.com' })).toEqual(
      fail({ kind: 'email_taken', email: 'OWNER@example.com' }),
    );
    const twice = await Promise.all([1, 2].map(() => scene.invite({ ...invitation, email: 'new@example.com' })));
    const [first, second] = twice.map((made) => valueOf(made).inviteToken);
    expect((await scene.acceptInvite({ inviteToken: first!, password: GOOD_PASSWORD })).ok).toBe(true);
    expect(await scene.acceptInvite({ inviteToken: second!, password: GOOD_PASSWORD })).toEqual(
      fail({ kind: 'email_taken', email: 'new@example.com' }),
    );
  });

  test('an admin of one org does not learn of accounts elsewhere by inviting them', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    await inviteAccount(scene, 'bad@beta.test', 'admin', 'beta');
    await inviteAccount(scene, 'own@acme.test', 'viewer', 'acme');
    const acme: Principal = { subject: 'key:acme', scopes: ['admin'], orgId: 'acme' };
    const invite = (email: string) => scene.invite({ principal: acme, email, role: 'viewer', orgId: undefined });
    const probe = valueOf(await invite('bad@beta.test'));
    const unknown = valueOf(await invite('nobody@beta.test'));
    expect({ ...probe, inviteToken: '', email: '' }).toEqual({ ...unknown, inviteToken: '', email: '' });
    expect(await invite('own@acme.test')).toEqual(fail({ kind: 'email_taken', email: 'own@acme.test' }));
    const listed = valueOf(
      await scene.listInvites({ principal: acme, orgId: undefined, perPage: 10, cursor: undefined }),
    );
    expect(listed.items.map(({ email }) => email).sort()).toEqual(['bad@beta.test', 'nobody@beta.test']);
    // It fails like any bad invite, and leaves the account as it was.
    expect(await scene.acceptInvite({ inviteToken: probe.inviteToken, password: GOOD_PASSWORD })).toEqual(INVALID);
    expect((await signIn(scene, 'bad@beta.test')).ok).toBe(true);
  });
});
