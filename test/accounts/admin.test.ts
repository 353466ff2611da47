import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
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
const NOT_FOUND = fail({ kind: 'not_found', what: 'account' });
const LAST_OWNER = fail({ kind: 'conflict', detail: 'this is the last owner; make another account an owner first' });

describe('account admin', () => {
  test('a new role holds at once: old tokens are dead, the session continues with it', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    expect(
      valueOf(await scene.changeRole({ principal: principalOf(owner), accountId: dev.id, role: 'viewer' })),
    ).toMatchObject({ role: 'viewer', tokenEpoch: 1 });
    expect(scene.revoked).toEqual([`account:${dev.id} 1`]);
    expect(valueOf(await scene.refresh({ refreshToken })).access.scopes).toEqual(['read']);
    expect(scene.audit).toContainEqual(
      expect.objectContaining({
        eventType: 'AccountRoleChanged',
        actor: `account:${owner.id}`,
        payload: expect.objectContaining({ from: 'developer', to: 'viewer' }),
      }),
    );
    expect(scene.events.at(-1)).toMatchObject({ change: 'role_changed', role: 'viewer', accountId: dev.id });
  });

  test('a disabled account is signed out at once and signs in again once enabled', async () => {
    const scene = await openScene(await newDatabase());
    const principal = principalOf(await registerOwner(scene));
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    expect(valueOf(await scene.setDisabled({ principal, accountId: dev.id, disabled: true })).disabled).toBe(true);
    expect(scene.revoked).toEqual([`account:${dev.id} 1`]);
    expect(await scene.refresh({ refreshToken })).toMatchObject({ fault: { kind: 'unauthenticated' } });
    expect(await signIn(scene, 'dev@example.com')).toEqual(
      fail({ kind: 'unauthenticated', detail: 'wrong e-mail or password' }),
    );
    valueOf(await scene.setDisabled({ principal, accountId: dev.id, disabled: false }));
    expect((await signIn(scene, 'dev@example.com')).ok).toBe(true);
    expect(await scene.refresh({ refreshToken })).toMatchObject({ fault: { kind: 'unauthenticated' } });
    expect(eventTypes(scene).filter((type) => type.startsWith('AccountDis') || type.startsWith('AccountEn'))).toEqual([
      'AccountDisabled',
      'AccountEnabled',
    ]);
  });

  test('never answers not found for accounts or invites while the database is away', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const about = { principal: principalOf(owner), accountId: owner.id };
    const page = { principal: ADMIN_KEY, orgId: undefined, perPage: 50, cursor: undefined };
    const token = 'x'.repeat(43);
    await scene.postgres.close();
    const answers = [
      await scene.me(about),
      await scene.getAccount(about),
      await scene.changeRole({ ...about, role: 'viewer' }),
      await scene.setDisabled({ ...about, disabled: true }),
      await scene.revokeSessions(about),
      await scene.listAccounts(page),
      await scene.listInvites(page),
      await scene.revokeInvite({ principal: ADMIN_KEY, inviteId: owner.id }),
      await scene.invite({ principal: ADMIN_KEY, email: 'dev@example.com', role: 'viewer', orgId: undefined }),
      await scene.acceptInvite({ inviteToken: token, password: GOOD_PASSWORD }),
      await scene.confirmPasswordReset({ resetToken: token, newPassword: GOOD_PASSWORD }),
      await signIn(scene, 'owner@example.com'),
      await scene.register({ email: 'dev@example.com', password: GOOD_PASSWORD, address: null }),
    ];
    expect(new Set(answers.map((answer) => (answer.ok ? 'ok' : answer.fault.kind)))).toEqual(
      new Set(['store_unreachable']),
    );
  });

  test('changes no account when the audit log cannot record it', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const principal = principalOf(await registerOwner(scene));
    const { id: accountId } = await inviteAccount(scene, 'dev@example.com', 'developer');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    const before = valueOf(await scene.getAccount({ principal, accountId }));
    const unlogged = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    const refused = [
      await unlogged.changeRole({ principal, accountId, role: 'viewer' }),
      await unlogged.setDisabled({ principal, accountId, disabled: true }),
      await unlogged.revokeSessions({ principal, accountId }),
    ];
    expect(refused).toEqual([1, 2, 3].map(() => fail({ kind: 'audit_unavailable' })));
    expect({ revoked: unlogged.revoked, events: unlogged.events }).toEqual({ revoked: [], events: [] });
    expect(valueOf(await scene.getAccount({ principal, accountId }))).toEqual(before);
    expect((await scene.refresh({ refreshToken })).ok).toBe(true);
  });

  test('sessions are revoked by an admin, or by the account itself', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    for (const [principal, epoch] of [
      [principalOf(owner), 1],
      [principalOf(dev), 2],
    ] as const) {
      valueOf(await scene.logout({ refreshToken: valueOf(await signIn(scene, 'dev@example.com')).refreshToken }));
      const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
      expect(valueOf(await scene.revokeSessions({ principal, accountId: dev.id })).tokenEpoch).toBe(epoch);
      expect(scene.audit.at(-1)).toMatchObject({ eventType: 'SessionRevoked', payload: { sessions_revoked: 1 } }); // not those that had ended
      expect(await scene.refresh({ refreshToken })).toMatchObject({ fault: { kind: 'unauthenticated' } });
    }
    expect(await scene.revokeSessions({ principal: principalOf(dev), accountId: owner.id })).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
  });

  test('the last owner stays, even when two owners remove each other at once', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const owner = await registerOwner(scene);
    const principal = principalOf(owner);
    expect(await scene.changeRole({ principal, accountId: owner.id, role: 'viewer' })).toEqual(LAST_OWNER);
    expect(await scene.setDisabled({ principal, accountId: owner.id, disabled: true })).toEqual(LAST_OWNER);
    const second = await inviteAccount(scene, 'second@example.com', 'admin');
    const promoted = valueOf(await scene.changeRole({ principal, accountId: second.id, role: 'owner' }));
    const isWaited = async () =>
      valueOf(await scene.postgres.attempt((on) => on.query('SELECT 1 FROM pg_locks WHERE NOT granted'))).rowCount > 0;
    let back: ReturnType<typeof scene.setDisabled> | undefined;
    let isAnswered = false;
    // The other one strikes back before the first blow is committed.
    const there = await openScene(url, {
      audit: {
        record: async () => {
          back = scene
            .setDisabled({ principal: principalOf(promoted), accountId: owner.id, disabled: true })
            .finally(() => {
              isAnswered = true;
            });
          await expect.poll(async () => isAnswered || isWaited()).toBe(true);
          return ok(undefined);
        },
      },
    });
    expect((await there.setDisabled({ principal, accountId: second.id, disabled: true })).ok).toBe(true);
    expect(await back).toEqual(LAST_OWNER);
  });

  test('an owner demoted or disabled at another gateway can change no account here', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const first = await registerOwner(scene);
    const principal = principalOf(first);
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    const owner = async (email: string) =>
      valueOf(
        await scene.changeRole({
          principal,
          accountId: (await inviteAccount(scene, email, 'admin')).id,
          role: 'owner',
        }),
      );
    const [demoted, disabled] = [await owner('second@example.com'), await owner('third@example.com')];
    valueOf(await scene.changeRole({ principal, accountId: demoted.id, role: 'developer' }));
    valueOf(await scene.setDisabled({ principal, accountId: disabled.id, disabled: true }));
    const there = await openScene(url);
    for (const former of [demoted, disabled]) {
      const asFormer = principalOf(former);
      const tried = [
        await there.changeRole({ principal: asFormer, accountId: demoted.id, role: 'owner' }),
        await there.setDisabled({ principal: asFormer, accountId: disabled.id, disabled: false }),
        await there.changeRole({ principal: asFormer, accountId: dev.id, role: 'owner' }),
        await there.setDisabled({ principal: asFormer, accountId: dev.id, disabled: true }),
        await there.revokeSessions({ principal: asFormer, accountId: first.id }),
      ];
      expect(tried.map((each) => (each.ok ? 'done' : each.fault.kind))).toEqual(Array(5).fill('unauthenticated'));
    }
    expect(there.audit).toEqual([]);
    valueOf(await there.setDisabled({ principal, accountId: disabled.id, disabled: false }));
  });

  test('nobody changes or creates an account above their own role', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const admin = await inviteAccount(scene, 'admin@example.com', 'admin');
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    for (const principal of [principalOf(admin), ADMIN_KEY]) {
      expect(await scene.changeRole({ principal, accountId: owner.id, role: 'admin' })).toMatchObject({ ok: false });
      expect(await scene.revokeSessions({ principal, accountId: owner.id })).toEqual(
        fail({ kind: 'role_forbidden', role: 'owner' }),
      );
      expect(await scene.changeRole({ principal, accountId: dev.id, role: 'owner' })).toEqual(
        fail({ kind: 'role_forbidden', role: 'owner' }),
      );
    }
    expect(await scene.changeRole({ principal: principalOf(dev), accountId: dev.id, role: 'admin' })).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
  });

  test('without an owner, an admin who sees every org may appoint one', async () => {
    const scene = await openScene(await newDatabase());
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    expect(valueOf(await scene.changeRole({ principal: ADMIN_KEY, accountId: dev.id, role: 'owner' })).role).toBe(
      'owner',
    );
    const next = await inviteAccount(scene, 'next@example.com', 'developer');
    expect(await scene.changeRole({ principal: ADMIN_KEY, accountId: next.id, role: 'owner' })).toEqual(
      fail({ kind: 'role_forbidden', role: 'owner' }),
    );
  });

  test('an admin of one org sees and changes only the accounts of that org', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const acme = await inviteAccount(scene, 'a@example.com', 'admin', 'acme');
    const colleague = await inviteAccount(scene, 'b@example.com', 'viewer', 'acme');
    const rival = await inviteAccount(scene, 'c@example.com', 'viewer', 'rival');
    const principal = principalOf(acme);
    const listed = valueOf(await scene.listAccounts({ principal, orgId: undefined, perPage: 50, cursor: undefined }));
    expect(listed.items.map((account) => account.email)).toEqual(['a@example.com', 'b@example.com']);
    for (const accountId of [owner.id, rival.id, 'nobody', '\u0000']) {
      expect(await scene.getAccount({ principal, accountId })).toEqual(NOT_FOUND);
      expect(await scene.changeRole({ principal, accountId, role: 'viewer' })).toEqual(NOT_FOUND);
      expect(await scene.setDisabled({ principal, accountId, disabled: true })).toEqual(NOT_FOUND);
      expect(await scene.revokeSessions({ principal, accountId })).toEqual(NOT_FOUND);
    }
    expect(valueOf(await scene.setDisabled({ principal, accountId: colleague.id, disabled: true })).disabled).toBe(
      true,
    );
    expect(await scene.changeRole({ principal: principalOf(owner), accountId: acme.id, role: 'owner' })).toMatchObject({
      fault: { kind: 'conflict' },
    });
  });

  test('the list resumes at its cursor', async () => {
    const scene = await openScene(await newDatabase());
    const principal = principalOf(await registerOwner(scene));
    for (const name of ['a', 'b', 'c']) await inviteAccount(scene, `${name}@example.com`, 'viewer');
    const first = valueOf(await scene.listAccounts({ principal, orgId: undefined, perPage: 2, cursor: undefined }));
    const second = valueOf(await scene.listAccounts({ principal, orgId: undefined, perPage: 2, cursor: first.next }));
    expect([...first.items, ...second.items].map((account) => account.email)).toEqual([
      'owner@example.com',
      'a@example.com',
      'b@example.com',
      'c@example.com',
    ]);
    expect(second.next).toBeUndefined();
    expect(Object.keys(first.items[0]!)).not.toContain('passwordHash');
    for (const cursor of ['x', '2', '\u0000', '00000000-0000-4000-8000-000000000000'])
      expect(await scene.listAccounts({ principal, orgId: undefined, perPage: 2, cursor })).toMatchObject({
        fault: { kind: 'invalid_argument', field: 'cursor' },
      });
    expect(
      await scene.listAccounts({
        principal: { ...principal, scopes: ['write'] },
        orgId: undefined,
        perPage: 2,
        cursor: undefined,
      }),
    ).toMatchObject({ fault: { kind: 'insufficient_scope' } });
  });

  test('an impossible org has no accounts or invites, without a database query', async () => {
    const scene = await openScene(await newDatabase());
    const principal = principalOf(await registerOwner(scene));
    for (const orgId of ['', '-', 'a b', '\u0000', 'acme\u0000', '\ud800', 'x'.repeat(100_000)]) {
      expect(await scene.listAccounts({ principal, orgId, perPage: 50, cursor: undefined })).toEqual({
        ok: true,
        value: { items: [] },
      });
      expect(await scene.listInvites({ principal, orgId, perPage: 50, cursor: undefined })).toEqual({
        ok: true,
        value: { items: [] },
      });
    }
  });

  test("a cursor reveals nothing of other orgs' accounts and does not work across orgs", async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const principal = principalOf(await inviteAccount(scene, 'a@example.com', 'admin', 'acme'));
    const rival = await inviteAccount(scene, 'b@example.com', 'viewer', 'rival');
    await inviteAccount(scene, 'c@example.com', 'viewer', 'acme');
    const first = valueOf(await scene.listAccounts({ principal, orgId: undefined, perPage: 1, cursor: undefined }));
    expect(first.next).toBe(first.items[0]!.id);
    for (const { id } of [owner, rival])
      expect(await scene.listAccounts({ principal, orgId: undefined, perPage: 1, cursor: id })).toMatchObject({
        fault: { kind: 'invalid_argument', field: 'cursor' },
      });
  });

  test('lists the accounts of the requested org and refuses another org', async () => {
    const scene = await openScene(await newDatabase());
    const owner = principalOf(await registerOwner(scene));
    const acme = principalOf(await inviteAccount(scene, 'a@example.com', 'admin', 'acme'));
    await inviteAccount(scene, 'b@example.com', 'viewer', 'rival');
    const emailsOf = async (orgId: string | undefined) =>
      valueOf(await scene.listAccounts({ principal: owner, orgId, perPage: 50, cursor: undefined })).items.map(
        ({ email }) => email,
      );
    expect(await emailsOf('rival')).toEqual(['b@example.com']);
    expect(await emailsOf('nowhere')).toEqual([]);
    expect(await scene.listAccounts({ principal: acme, orgId: 'rival', perPage: 50, cursor: undefined })).toEqual(
      fail({ kind: 'org_forbidden', orgId: 'rival' }),
    );
  });

  test('whoami describes the signed-in account', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    expect(valueOf(await scene.me({ principal: principalOf(owner) }))).toEqual({ ...owner, lockedUntilMs: null });
    expect(await scene.me({ principal: ADMIN_KEY })).toEqual(
      fail({ kind: 'not_found', what: 'account behind this API key' }),
    );
  });

  test('a restarted gateway learns which tokens were revoked meanwhile', async () => {
    const url = await newDatabase();
    const before = await openScene(url);
    const principal = principalOf(await registerOwner(before));
    const dev = await inviteAccount(before, 'dev@example.com', 'developer');
    valueOf(await before.revokeSessions({ principal, accountId: dev.id }));
    const after = await openScene(url);
    valueOf(await after.accounts.syncRevocations());
    expect(after.revoked).toEqual([`account:${dev.id} 1`]);
    const muchLater = await openScene(url);
    valueOf(
      await muchLater.postgres.attempt((on) =>
        on.query(`UPDATE accounts SET tokens_revoked_at = tokens_revoked_at - interval '76 minutes'`),
      ),
    );
    valueOf(await muchLater.accounts.syncRevocations());
    expect(muchLater.revoked).toEqual([]);
  });

  test('learns which tokens another gateway revoked, however far apart their clocks', async () => {
    const url = await newDatabase();
    const [behind, ahead] = [await openScene(url), await openScene(url)];
    ahead.advance(20 * 60_000);
    const principal = principalOf(await registerOwner(behind));
    const dev = await inviteAccount(behind, 'dev@example.com', 'developer');
    valueOf(await behind.setDisabled({ principal, accountId: dev.id, disabled: true }));
    valueOf(await ahead.accounts.syncRevocations());
    expect(ahead.revoked).toEqual([`account:${dev.id} 1`]);
  });
});
