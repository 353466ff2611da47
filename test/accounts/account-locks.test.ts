import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import {
  ADMIN_KEY,
  eventTypes,
  inviteAccount,
  openScene,
  principalOf,
  registerOwner,
  type Scene,
  START_MS,
  signIn,
  valueOf,
} from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';

const newDatabase = withTables();
const LOCK_MS = 15 * 60_000;
const NOT_FOUND = fail({ kind: 'not_found', what: 'account' });

const lockOut = async (scene: Scene, email: string): Promise<void> => {
  for (let attempt = 0; attempt < 5; attempt++) await signIn(scene, email, 'wrong password');
};
const locksOf = async (scene: Scene, principal = ADMIN_KEY) =>
  valueOf(await scene.listAccounts({ principal, orgId: undefined, perPage: 50, cursor: undefined })).items.map(
    ({ email, lockedUntilMs }) => [email, lockedUntilMs],
  );

describe('account locks', () => {
  test('an admin sees which accounts are locked, and until when', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const dev = await inviteAccount(scene, 'Dev@example.com', 'developer');
    await lockOut(scene, 'dev@EXAMPLE.com');
    expect(await locksOf(scene)).toEqual([
      ['owner@example.com', null],
      ['Dev@example.com', START_MS + LOCK_MS],
    ]);
    expect(valueOf(await scene.getAccount({ principal: ADMIN_KEY, accountId: dev.id })).lockedUntilMs).toBe(
      START_MS + LOCK_MS,
    );
    expect(
      valueOf(await scene.setDisabled({ principal: ADMIN_KEY, accountId: dev.id, disabled: true })).lockedUntilMs,
    ).toBe(START_MS + LOCK_MS);
    expect(valueOf(await scene.me({ principal: principalOf(dev) })).lockedUntilMs).toBe(START_MS + LOCK_MS);
    scene.advance(LOCK_MS);
    expect(await locksOf(scene)).toEqual([
      ['owner@example.com', null],
      ['Dev@example.com', null],
    ]);
  });

  test('an admin lifts a lock: sign-in works, failures reset, one entry is recorded', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    await lockOut(scene, 'dev@example.com');
    const about = { principal: principalOf(owner), accountId: dev.id };
    expect(valueOf(await scene.unlock(about))).toMatchObject({ email: 'dev@example.com', lockedUntilMs: null });
    expect(scene.events.at(-1)).toMatchObject({ change: 'unlocked', accountId: dev.id });
    expect(scene.audit.at(-1)).toMatchObject({
      eventType: 'AccountUnlocked',
      actor: `account:${owner.id}`,
      payload: { account_id: dev.id, email: 'dev@example.com' },
    });
    for (let attempt = 0; attempt < 4; attempt++) await signIn(scene, 'dev@example.com', 'wrong password');
    expect((await signIn(scene, 'dev@example.com')).ok).toBe(true);
    expect((await scene.refresh({ refreshToken })).ok).toBe(true);
    expect(valueOf(await scene.unlock(about)).lockedUntilMs).toBeNull();
    expect(eventTypes(scene).filter((type) => type === 'AccountUnlocked')).toHaveLength(1);
  });

  test('lifting a lock takes an admin of the org and role, and an audit log that works', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const owner = await registerOwner(scene);
    const dev = await inviteAccount(scene, 'dev@example.com', 'developer');
    for (const email of ['owner@example.com', 'dev@example.com']) await lockOut(scene, email);
    expect(await scene.unlock({ principal: ADMIN_KEY, accountId: owner.id })).toEqual(
      fail({ kind: 'role_forbidden', role: 'owner' }),
    );
    expect(await scene.unlock({ principal: { ...ADMIN_KEY, orgId: 'acme' }, accountId: dev.id })).toEqual(NOT_FOUND);
    expect(await scene.unlock({ principal: ADMIN_KEY, accountId: 'nobody' })).toEqual(NOT_FOUND);
    expect(await scene.unlock({ principal: principalOf(dev), accountId: dev.id })).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
    const unlogged = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await unlogged.unlock({ principal: ADMIN_KEY, accountId: dev.id })).toEqual(
      fail({ kind: 'audit_unavailable' }),
    );
    expect((await locksOf(scene)).map(([, untilMs]) => untilMs)).toEqual([START_MS + LOCK_MS, START_MS + LOCK_MS]);
    expect((await scene.unlock({ principal: ADMIN_KEY, accountId: dev.id })).ok).toEqual(ok(undefined).ok);
  });
});
