import { describe, expect, test } from 'vitest';
import { listInvites } from '../../src/accounts/invite-admin.ts';
import type { AccountStore } from '../../src/accounts/store.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import {
  ADMIN_KEY,
  eventTypes,
  GOOD_PASSWORD,
  inviteAccount,
  openScene,
  principalOf,
  registerOwner,
  type Scene,
  valueOf,
  whileUnderWay,
} from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';

const newDatabase = withTables();
const DAY_MS = 24 * 3_600_000;
const NO_SUCH = fail({ kind: 'not_found', what: 'invite' });

const send = async (scene: Scene, email: string, orgId?: string, principal = ADMIN_KEY) =>
  valueOf(await scene.invite({ principal, email, role: 'viewer', orgId })).inviteToken;
const list = async (scene: Scene, principal = ADMIN_KEY, orgId?: string) =>
  valueOf(await scene.listInvites({ principal, orgId, perPage: 50, cursor: undefined })).items;
const idOf = async (scene: Scene, email: string) => (await list(scene)).find((invite) => invite.email === email)!.id;

describe('invite admin', () => {
  test('lists open invites without their tokens, until they are used or expired', async () => {
    const scene = await openScene(await newDatabase());
    const tokens = [await send(scene, 'a@example.com', 'acme'), await send(scene, 'b@example.com')];
    const [first] = await list(scene);
    expect(first).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      email: 'a@example.com',
      role: 'viewer',
      orgId: 'acme',
      invitedBy: 'key:k1',
      createdAtMs: 1_893_456_000_000,
      expiresAtMs: 1_893_456_000_000 + 7 * DAY_MS,
    });
    scene.advance(DAY_MS);
    await send(scene, 'c@example.com');
    valueOf(await scene.acceptInvite({ inviteToken: tokens[0]!, password: GOOD_PASSWORD }));
    expect((await list(scene)).map(({ email }) => email)).toEqual(['b@example.com', 'c@example.com']);
    scene.advance(6 * DAY_MS);
    expect((await list(scene)).map(({ email }) => email)).toEqual(['c@example.com']);
  });

  test('an invite whose address has an account is not listed, in any spelling', async () => {
    const scene = await openScene(await newDatabase(), { openRegistration: true });
    const twice = await send(scene, 'a@example.com');
    for (const email of ['A@example.com', 'ÅSA@example.com', 'b@example.com', 'c@example.com'])
      await send(scene, email);
    valueOf(await scene.acceptInvite({ inviteToken: twice, password: GOOD_PASSWORD }));
    valueOf(await scene.register({ email: 'åsa@example.com', password: GOOD_PASSWORD, address: null }));
    expect((await list(scene)).map(({ email }) => email)).toEqual(['b@example.com', 'c@example.com']);
    // A page is full all the same, and the last one says that it is.
    const first = valueOf(
      await scene.listInvites({ principal: ADMIN_KEY, orgId: undefined, perPage: 1, cursor: undefined }),
    );
    expect(first).toMatchObject({ items: [{ email: 'b@example.com' }], next: first.items[0]!.id });
    expect(
      valueOf(await scene.listInvites({ principal: ADMIN_KEY, orgId: undefined, perPage: 1, cursor: first.next })),
    ).toMatchObject({ items: [{ email: 'c@example.com' }], next: undefined });
  });

  /**
   * How many invites each query has read for a page of one, where so many go to each of these addresses, all with an
   * account, and one more to another.
   */
  async function piecesOf(addresses: number, each: number): Promise<readonly number[]> {
    const scene = await openScene(await newDatabase());
    const startMs = scene.context.clock.nowMs();
    const run = async (text: string, values: readonly unknown[]) =>
      void valueOf(await scene.postgres.attempt((on) => on.query(text, values)));
    await run(
      `INSERT INTO accounts (id, email, email_key, password_hash, role, created_at)
    SELECT 'id ' || n, 'A' || n || '@example.com', 'a' || n || '@example.com', 'hash', 'viewer', $2 FROM generate_series(1, $1) n`,
      [addresses, new Date(startMs)],
    );
    await run(
      `INSERT INTO invites (digest, email, role, invited_by, created_at, expires_at)
    SELECT 'digest ' || i || ' ' || n, 'A' || n || '@example.com', 'viewer', 'key:k1', $3, $4 FROM generate_series(1, $2) i, generate_series(1, $1) n`,
      [addresses, each, new Date(startMs), new Date(startMs + DAY_MS)],
    );
    await send(scene, 'b@example.com');
    const { store } = scene.context;
    const pieces: number[] = [];
    const counting: AccountStore = {
      ...store,
      read: (work) =>
        store.read((reads) =>
          work({
            ...reads,
            openInvites: async (listing, nowMs) => {
              const rows = await reads.openInvites(listing, nowMs);
              pieces.push(rows.length);
              return rows;
            },
          }),
        ),
    };
    const page = valueOf(
      await listInvites(
        { ...scene.context, store: counting },
        { principal: ADMIN_KEY, orgId: undefined, perPage: 1, cursor: undefined },
      ),
    );
    expect(page).toMatchObject({ items: [{ email: 'b@example.com' }], next: undefined });
    return pieces;
  }

  test('skips thousands of invites with accounts in reads of a thousand', async () => {
    expect(await piecesOf(2_500, 1)).toEqual([2, 1000, 1000, 499]);
  });

  test('skips thousands of invites to one address, or a few, without reading them', async () => {
    expect(await piecesOf(1, 20_000)).toEqual([2, 1]);
    expect(await piecesOf(600, 20)).toEqual([2, 1000, 1]);
  });

  test('a revoked invite is useless; revoking it again is no error and no new entry', async () => {
    const scene = await openScene(await newDatabase());
    const inviteToken = await send(scene, 'a@example.com', 'acme');
    const inviteId = await idOf(scene, 'a@example.com');
    expect(await scene.revokeInvite({ principal: ADMIN_KEY, inviteId })).toEqual(ok(undefined));
    expect(await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).toEqual(
      fail({ kind: 'invalid_invite' }),
    );
    expect(await list(scene)).toEqual([]);
    expect(await scene.revokeInvite({ principal: ADMIN_KEY, inviteId })).toEqual(ok(undefined));
    expect(eventTypes(scene)).toEqual(['InviteCreated', 'InviteRevoked']);
    expect(scene.audit.at(-1)).toMatchObject({
      actor: 'key:k1',
      lineage: { orgId: 'acme' },
      payload: { email: 'a@example.com', role: 'viewer', invited_by: 'key:k1' },
    });
    expect(scene.events.at(-1)).toMatchObject({
      change: 'invite_revoked',
      accountId: null,
      email: 'a@example.com',
      orgId: 'acme',
    });
  });

  test('a gateway with its clock behind does not accept an invite revoked elsewhere', async () => {
    const database = await newDatabase();
    const [ahead, behind] = [await openScene(database), await openScene(database)];
    ahead.advance(3_600_000);
    const inviteToken = await send(behind, 'a@example.com');
    expect(await ahead.revokeInvite({ principal: ADMIN_KEY, inviteId: await idOf(ahead, 'a@example.com') })).toEqual(
      ok(undefined),
    );
    expect(await list(behind)).toEqual([]);
    expect(await behind.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).toEqual(
      fail({ kind: 'invalid_invite' }),
    );
  });

  test('a concurrent accept and revocation do not both succeed', async () => {
    const scene = await openScene(await newDatabase());
    for (const name of ['a', 'b', 'c', 'd']) {
      const inviteToken = await send(scene, `${name}@example.com`);
      const inviteId = await idOf(scene, `${name}@example.com`);
      const [accepted, revoked] = await Promise.all([
        scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD }),
        scene.revokeInvite({ principal: ADMIN_KEY, inviteId }),
      ]);
      expect(accepted.ok).not.toBe(revoked.ok);
    }
  });

  test('an invite is never both accepted and revoked, whichever comes first', async () => {
    const scene = await openScene(await newDatabase());
    const [first, second] = [await send(scene, 'a@example.com'), await send(scene, 'b@example.com')];
    const inviteId = await idOf(scene, 'b@example.com');
    expect(
      await whileUnderWay(scene, `UPDATE invites SET revoked_at = now() WHERE email = 'a@example.com'`, () =>
        scene.acceptInvite({ inviteToken: first, password: GOOD_PASSWORD }),
      ),
    ).toEqual(fail({ kind: 'invalid_invite' }));
    expect(
      await whileUnderWay(scene, `UPDATE invites SET used_at = now() WHERE email = 'b@example.com'`, () =>
        scene.revokeInvite({ principal: ADMIN_KEY, inviteId }),
      ),
    ).toEqual(fail({ kind: 'conflict', detail: 'this invite has already been accepted; disable the account instead' }));
    expect(await scene.acceptInvite({ inviteToken: second, password: GOOD_PASSWORD })).toEqual(
      fail({ kind: 'invalid_invite' }),
    );
  });

  test('an accepted invite cannot be revoked: the account exists', async () => {
    const scene = await openScene(await newDatabase());
    const inviteToken = await send(scene, 'a@example.com');
    const inviteId = await idOf(scene, 'a@example.com');
    valueOf(await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD }));
    expect(await scene.revokeInvite({ principal: ADMIN_KEY, inviteId })).toEqual(
      fail({ kind: 'conflict', detail: 'this invite has already been accepted; disable the account instead' }),
    );
  });

  test('admins see and revoke invites of their org that they could have sent', async () => {
    const scene = await openScene(await newDatabase());
    const owner = principalOf(await registerOwner(scene));
    const acme = principalOf(await inviteAccount(scene, 'acme-admin@example.com', 'admin', 'acme'));
    const developer = principalOf(await inviteAccount(scene, 'dev@example.com', 'developer'));
    await send(scene, 'a@example.com', 'acme');
    await send(scene, 'b@example.com', 'rival');
    valueOf(
      await scene.invite({ principal: owner, email: 'second-owner@example.com', role: 'owner', orgId: undefined }),
    );

    expect((await list(scene, acme)).map(({ email }) => email)).toEqual(['a@example.com']);
    expect((await list(scene, owner, 'rival')).map(({ email }) => email)).toEqual(['b@example.com']);
    expect(await scene.listInvites({ principal: acme, orgId: 'rival', perPage: 50, cursor: undefined })).toEqual(
      fail({ kind: 'org_forbidden', orgId: 'rival' }),
    );
    expect(
      await scene.listInvites({ principal: developer, orgId: undefined, perPage: 50, cursor: undefined }),
    ).toMatchObject({ fault: { kind: 'insufficient_scope' } });

    const rival = await idOf(scene, 'b@example.com');
    for (const inviteId of [rival, '00000000-0000-4000-8000-000000000000', 'x', '\u0000'])
      expect(await scene.revokeInvite({ principal: acme, inviteId })).toEqual(NO_SUCH);
    expect(await scene.revokeInvite({ principal: developer, inviteId: rival })).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
    expect(
      await scene.revokeInvite({ principal: ADMIN_KEY, inviteId: await idOf(scene, 'second-owner@example.com') }),
    ).toEqual(fail({ kind: 'role_forbidden', role: 'owner' }));
    expect(await scene.revokeInvite({ principal: acme, inviteId: await idOf(scene, 'a@example.com') })).toEqual(
      ok(undefined),
    );
    expect(await list(scene)).toHaveLength(2);
  });

  test('the list resumes after an answered invite, and only at one the caller sees', async () => {
    const scene = await openScene(await newDatabase());
    for (const name of ['a', 'b', 'c']) await send(scene, `${name}@example.com`, name === 'b' ? 'rival' : 'acme');
    const page = (cursor: string | undefined, principal = ADMIN_KEY) =>
      scene.listInvites({ principal, orgId: undefined, perPage: 1, cursor });
    const first = valueOf(await page(undefined));
    expect({ items: first.items.map(({ email }) => email), next: first.next }).toEqual({
      items: ['a@example.com'],
      next: first.items[0]!.id,
    });
    valueOf(await scene.revokeInvite({ principal: ADMIN_KEY, inviteId: first.next! }));
    const second = valueOf(await page(first.next));
    expect(second.items.map(({ email }) => email)).toEqual(['b@example.com']);
    expect(valueOf(await page(second.next))).toMatchObject({ items: [{ email: 'c@example.com' }], next: undefined });
    for (const cursor of ['x', '\u0000', '00000000-0000-4000-8000-000000000000'])
      expect(await page(cursor)).toMatchObject({ fault: { kind: 'invalid_argument', field: 'cursor' } });
    expect(await page(second.next, { ...ADMIN_KEY, orgId: 'acme' })).toMatchObject({
      fault: { kind: 'invalid_argument', field: 'cursor' },
    });
  });
});
