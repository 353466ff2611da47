/** A person who has signed in before is not locked out by others (docs/spec.md, Lockout). */
import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import {
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

const WRONG = fail({ kind: 'unauthenticated', detail: 'wrong e-mail or password' });
const LOCKED = fail({ kind: 'account_locked', retryAfterSecs: 900 });

const attempt = (scene: Scene, device: string | undefined, password = GOOD_PASSWORD) =>
  scene.login({ email: 'owner@example.com', password, rememberMe: false, address: '192.0.2.1', device });

/** Guesses until the account is locked. */
async function attack(scene: Scene, device?: string): Promise<void> {
  for (let guess = 0; guess < 5; guess += 1) expect(await attempt(scene, device, 'a guess')).toEqual(WRONG);
  expect(await attempt(scene, device, 'a guess')).toEqual(LOCKED);
}

/** The owner, and what the device got that has signed in. */
async function openWithDevice() {
  const scene = await openScene(await newDatabase());
  const owner = await registerOwner(scene);
  const { device } = valueOf(await signIn(scene, 'owner@example.com'));
  if (device === undefined) throw new Error('the device got nothing');
  return { scene, owner, device };
}

describe('a device that has signed in before', () => {
  test('is not locked out by the wrong passwords of others, who stay locked', async () => {
    const { scene, device } = await openWithDevice();
    await attack(scene);
    expect(await attempt(scene, undefined)).toEqual(LOCKED);
    expect(valueOf(await attempt(scene, device)).device).toBe(device);
    expect(scene.audit.at(-1)).toMatchObject({ eventType: 'LoginSucceeded', payload: { known_device: true } });
    // Signing in gives those who guess no further attempts.
    expect(await attempt(scene, undefined, 'a guess')).toEqual(LOCKED);
  });

  test('has five attempts like everybody, whether others have used theirs or not', async () => {
    const { scene, device } = await openWithDevice();
    await attack(scene, device);
    expect(await attempt(scene, device)).toEqual(LOCKED);
    expect(await attempt(scene, undefined)).toEqual(LOCKED);
    scene.advance(15 * 60_000);
    expect((await attempt(scene, device)).ok).toBe(true);
    await attack(scene);
    await attack(scene, device);
    expect(await attempt(scene, device)).toEqual(LOCKED);
  });

  test('and others who guess at once have five attempts each, no more', async () => {
    const { scene, device } = await openWithDevice();
    const many = (of?: string) => Array.from({ length: 10 }, () => attempt(scene, of, 'a guess'));
    const answers = await Promise.all([...many(), ...many(device)]);
    const wrong = answers.filter((answer) => !answer.ok && answer.fault.kind === 'unauthenticated');
    // Each has five of its own; those of the device count for the account too.
    expect(wrong.length).toBeGreaterThanOrEqual(5);
    expect(wrong.length).toBeLessThanOrEqual(10);
    expect(await attempt(scene, undefined)).toEqual(LOCKED);
  });

  test('is let in again when an admin has lifted the lock', async () => {
    const { scene, owner, device } = await openWithDevice();
    await attack(scene, device);
    valueOf(await scene.unlock({ principal: principalOf(owner), accountId: owner.id }));
    expect((await attempt(scene, device)).ok).toBe(true);
  });

  test('is known at every gateway on the database, and by that account only', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    await inviteAccount(scene, 'dev@example.com', 'developer');
    const own = valueOf(await signIn(scene, 'owner@example.com')).device ?? '';
    const others = valueOf(await signIn(scene, 'dev@example.com')).device ?? '';
    await attack(scene);
    const forged = [
      others,
      `${own.split('.')[0]}.${others.split('.')[1]}`,
      own.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
      own.split('.')[0] ?? '',
      `${own}x`,
      '',
    ];
    for (const device of forged) expect(await attempt(scene, device)).toEqual(LOCKED);
    expect((await attempt(await openScene(url), own)).ok).toBe(true);
  });
});
