import { describe, expect, test } from 'vitest';
import { CONSOLE } from '../../src/accounts/access.ts';
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
  type Scene,
  signIn,
  valueOf,
} from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';

const newDatabase = withTables();
const NEW_PASSWORD = 'another horse, quite correct';
const HOUR_MS = 3_600_000;
const INVALID = fail({ kind: 'invalid_reset_token' });

async function requestReset(scene: Scene, email: string): Promise<string | undefined> {
  const before = scene.mails.length;
  valueOf(await scene.requestPasswordReset({ email }));
  await scene.accounts.idle();
  return /reset-password\/([\w-]{43})\n/.exec(scene.mails[before]?.text ?? '')?.[1];
}

describe('password reset', () => {
  test('a mailed token sets the password once, ends all sessions and lifts the lock', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const { refreshToken } = valueOf(await signIn(scene, 'owner@example.com'));
    for (let i = 0; i < 5; i++) await signIn(scene, 'owner@example.com', 'wrong');
    const resetToken = (await requestReset(scene, ' Owner@EXAMPLE.com'))!;
    expect(scene.mails).toEqual([
      {
        to: 'owner@example.com',
        subject: 'Reset your password',
        text: expect.stringContaining(`https://gateway.test/#/reset-password/${resetToken}\n`),
      },
    ]);

    expect(valueOf(await scene.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD }))).toBeUndefined();
    expect(scene.revoked).toEqual([`account:${owner.id} 1`]);
    expect(await scene.refresh({ refreshToken })).toMatchObject({ fault: { kind: 'unauthenticated' } });
    expect(await signIn(scene, 'owner@example.com', GOOD_PASSWORD)).toMatchObject({
      fault: { kind: 'unauthenticated' },
    });
    expect((await signIn(scene, 'owner@example.com', NEW_PASSWORD)).ok).toBe(true);
    expect(await scene.confirmPasswordReset({ resetToken, newPassword: GOOD_PASSWORD })).toEqual(INVALID);
    expect(eventTypes(scene).slice(-4)).toEqual([
      'PasswordResetRequested',
      'PasswordResetCompleted',
      'LoginFailed',
      'LoginSucceeded',
    ]);
    expect(JSON.stringify(scene.audit)).not.toContain(resetToken);
  });

  test('lets one of ten concurrent uses of a token win, and ends the other tokens', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const resetToken = (await requestReset(scene, 'owner@example.com'))!;
    const other = (await requestReset(scene, 'owner@example.com'))!;
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => scene.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD })),
    );
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
    expect(answers.filter((answer) => !answer.ok)).toEqual(Array.from({ length: 9 }, () => INVALID));
    expect(await scene.confirmPasswordReset({ resetToken: other, newPassword: GOOD_PASSWORD })).toEqual(INVALID);
  });

  test('a token ends after an hour and survives a weak password', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const resetToken = (await requestReset(scene, 'owner@example.com'))!;
    scene.advance(HOUR_MS - 1);
    expect(await scene.confirmPasswordReset({ resetToken, newPassword: 'short' })).toMatchObject({
      fault: { kind: 'weak_password' },
    });
    scene.advance(1);
    expect(await scene.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD })).toEqual(INVALID);
  });

  test('a link that was handed over ends with the right of whoever made it', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const admin = await inviteAccount(scene, 'admin@example.com', 'admin');
    const viewer = await inviteAccount(scene, 'viewer@example.com', 'viewer');
    const link = async (principal: Principal) =>
      valueOf(await scene.issuePasswordReset({ principal, account: viewer.id })).resetToken;
    const confirm = (resetToken: string) => scene.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD });
    const change = { principal: principalOf(owner), accountId: admin.id };

    const ofAdmin = await link(principalOf(admin));
    valueOf(await scene.changeRole({ ...change, role: 'developer' }));
    expect(await confirm(ofAdmin)).toEqual(INVALID);
    valueOf(await scene.changeRole({ ...change, role: 'admin' }));
    valueOf(await scene.setDisabled({ ...change, disabled: true }));
    expect(await confirm(ofAdmin)).toEqual(INVALID);

    const ofKey = await link(ADMIN_KEY);
    scene.revokedKeys.add(ADMIN_KEY.subject);
    expect(await confirm(ofKey)).toEqual(INVALID);
    const ofConsole = await link({ subject: CONSOLE, scopes: ['admin'], orgId: null, role: 'owner' });
    expect(valueOf(await confirm(ofConsole))).toBeUndefined();
  });

  test('unknown, disabled and invalid addresses get one answer, no mail and no entry', async () => {
    const warnings: unknown[] = [];
    const scene = await openScene(await newDatabase(), { log: { warn: (...line) => void warnings.push(line) } });
    const owner = await registerOwner(scene);
    const gone = await inviteAccount(scene, 'gone@example.com', 'viewer');
    valueOf(await scene.setDisabled({ principal: principalOf(owner), accountId: gone.id, disabled: true }));
    for (const email of ['nobody@example.com', 'gone@example.com', 'owner@example.com\r\nBcc: x@y.z', ''])
      expect(await requestReset(scene, email)).toBeUndefined();
    expect({ mails: scene.mails, warnings }).toEqual({ mails: [], warnings: [] });
  });

  test('mails no reset and sets no password that the audit log cannot record', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    const resetToken = (await requestReset(scene, 'owner@example.com'))!;
    const unlogged = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await requestReset(unlogged, 'owner@example.com')).toBeUndefined();
    expect(await unlogged.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD })).toEqual(
      fail({ kind: 'audit_unavailable' }),
    );
    expect({ revoked: unlogged.revoked, events: unlogged.events }).toEqual({ revoked: [], events: [] });
    expect((await signIn(scene, 'owner@example.com')).ok).toBe(true);
    expect((await scene.confirmPasswordReset({ resetToken, newPassword: NEW_PASSWORD })).ok).toBe(true);
  });

  test('the answer does not wait for the database or for the mail', async () => {
    const scene = await openScene(await newDatabase(), { mailer: { send: () => new Promise(() => undefined) } });
    await registerOwner(scene);
    await scene.postgres.close();
    expect((await scene.requestPasswordReset({ email: 'owner@example.com' })).ok).toBe(true);
  });

  test('a sixth open request for an address sends no mail', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    for (let i = 0; i < 8; i++) await requestReset(scene, 'owner@example.com');
    expect(scene.mails).toHaveLength(5);
    scene.advance(HOUR_MS);
    expect(await requestReset(scene, 'owner@example.com')).toBeDefined();
  });

  test('requests beyond the queue are dropped and still answered', async () => {
    const warnings: string[] = [];
    const scene = await openScene(await newDatabase(), { log: { warn: (message) => void warnings.push(message) } });
    const answers = await Promise.all(
      Array.from({ length: 1100 }, (_, i) => scene.requestPasswordReset({ email: `nobody${i}@example.com` })),
    );
    expect(answers.every((answer) => answer.ok)).toBe(true);
    expect(new Set(warnings)).toEqual(new Set(['too many password resets are waiting; one was dropped']));
    await scene.accounts.idle();
  });

  test('logs once that the database is away, however many requests come', async () => {
    const lines: (readonly [string, object | undefined])[] = [];
    const scene = await openScene(await newDatabase(), {
      log: { warn: (message, fields) => void lines.push([message, fields]) },
    });
    await scene.postgres.close();
    for (let i = 0; i < 1100; i++) await scene.requestPasswordReset({ email: `nobody${i}@example.com` });
    await scene.accounts.idle();
    expect(lines).toEqual([['a requested password reset could not be prepared', { fault: 'store_unreachable' }]]);
  });
});
