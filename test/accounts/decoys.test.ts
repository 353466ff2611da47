/**
 * The cost of a refused sign-in after the parameters of hashing have been changed, while accounts still have hashes of
 * the old ones.
 */
import { describe, expect, test } from 'vitest';
import { GOOD_PASSWORD, openScene, type Scene, valueOf } from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';

const newDatabase = withTables();
const OLD_KIB = 256;
const NEW_KIB = 64;

const register = async (scene: Scene, ...emails: readonly string[]): Promise<void> => {
  for (const email of emails) valueOf(await scene.register({ email, password: GOOD_PASSWORD, address: null }));
};
const signIn = (scene: Scene, email: string, password = 'wrong password') =>
  scene.login({ email, password, rememberMe: false, address: null });
const addresses = (count: number, name: string) =>
  Array.from({ length: count }, (_, nth) => `${name}${nth}@example.com`);

/**
 * A gateway whose parameters are the new ones, and the memory that each hash takes that it compares a password with, in
 * KiB.
 */
async function openChanged(url: string): Promise<{ readonly scene: Scene; readonly compared: number[] }> {
  const { context } = await openScene(url, { memoryKib: NEW_KIB });
  const compared: number[] = [];
  const scene = await openScene(url, {
    openRegistration: true,
    passwords: {
      ...context.passwords,
      verify: (hash, password) => {
        compared.push(Number(/[$]m=(\d+),/.exec(hash)![1]));
        return context.passwords.verify(hash, password);
      },
    },
  });
  return { scene, compared };
}
const costsOf = async (
  { scene, compared }: Awaited<ReturnType<typeof openChanged>>,
  emails: readonly string[],
): Promise<readonly number[]> => {
  compared.length = 0;
  for (const email of emails) await signIn(scene, email);
  return compared.slice();
};

describe('decoys', () => {
  test('unknown addresses cost as much as accounts, in their proportion of parameters', async () => {
    const url = await newDatabase();
    const nobody = addresses(100, 'nobody');
    await register(await openScene(url, { memoryKib: OLD_KIB, openRegistration: true }), ...addresses(20, 'old'));
    const changed = await openChanged(url);
    expect(new Set(await costsOf(changed, nobody))).toEqual(new Set([OLD_KIB]));

    await register(changed.scene, ...addresses(20, 'new'));
    const costs = await costsOf(changed, nobody);
    const share = costs.filter((kib) => kib === OLD_KIB).length / costs.length;
    expect(share).toBeGreaterThan(0.15);
    expect(share).toBeLessThan(0.85);
    expect(new Set(costs)).toEqual(new Set([OLD_KIB, NEW_KIB]));
    expect(await costsOf(changed, nobody)).toEqual(costs);
    expect(await costsOf(await openChanged(url), nobody)).toEqual(costs); // in another gateway, or after a restart

    for (const email of addresses(20, 'old')) valueOf(await signIn(changed.scene, email, GOOD_PASSWORD));
    expect(new Set(await costsOf(changed, nobody))).toEqual(new Set([NEW_KIB]));
  });

  test('the password of an account does not match the addresses that cost as much', async () => {
    const scene = await openScene(await newDatabase(), { openRegistration: true });
    await register(scene, 'owner@example.com');
    expect(await signIn(scene, 'nobody@example.com', GOOD_PASSWORD)).toMatchObject({
      ok: false,
      fault: { kind: 'unauthenticated' },
    });
  });
});
