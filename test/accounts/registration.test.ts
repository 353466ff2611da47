import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import { mintSecret } from '../../src/credentials/secret-token.ts';
import { eventTypes, GOOD_PASSWORD, openScene, registerOwner, signIn, valueOf } from '../support/accounts.ts';
import { fastestMs } from '../support/fastest.ts';
import { withTables } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';

const newDatabase = withTables();

describe('the first account', () => {
  const { secret, digest } = mintSecret();
  const owner = { email: 'owner@example.com', password: GOOD_PASSWORD, address: null };
  const setup = { token: digest, isAdmin: async (bearer: string) => bearer === 'the-admin-key' };

  test.each([
    ['nothing', {}],
    ['a token that was never made', { setupToken: 'x'.repeat(43) }],
    ['a token of another shape', { setupToken: 'guess' }],
    ['another key', { bearer: 'a-read-key' }],
  ])('needs proof where others reach the gateway; refuses %s', async (_, proof) => {
    const scene = await openScene(await newDatabase(), { setup, openRegistration: true });
    expect(valueOf(await scene.signInMethods({})).isSetupRequired).toBe(true);
    expect(await scene.register({ ...owner, ...proof })).toEqual(fail({ kind: 'setup_required' }));
    expect(scene.audit).toEqual([]);
    expect(scene.hashed).not.toContain(GOOD_PASSWORD);
  });

  test.each([
    ['the setup token', { setupToken: secret }],
    ['the admin key', { bearer: 'the-admin-key' }],
  ])('can be registered with %s, once', async (_, proof) => {
    const scene = await openScene(await newDatabase(), { setup });
    expect(valueOf(await scene.register({ ...owner, ...proof })).role).toBe('owner');
    expect(await scene.register({ ...owner, ...proof, email: 'thief@example.com' })).toEqual(
      fail({ kind: 'registration_closed' }),
    );
    expect(valueOf(await scene.signInMethods({})).isSetupRequired).toBe(false);
  });

  test('is bound to no org, and those of open registration to the one that is set', async () => {
    const scene = await openScene(await newDatabase(), { openRegistration: true, openRegistrationOrg: 'guests' });
    expect((await registerOwner(scene)).orgId).toBeNull();
    const stranger = valueOf(
      await scene.register({ email: 'stranger@example.com', password: GOOD_PASSWORD, address: null }),
    );
    expect(stranger).toMatchObject({ role: 'developer', orgId: 'guests' });
  });
});

describe('registration', () => {
  test('the first account is the owner, and registration is closed after it', async () => {
    const scene = await openScene(await newDatabase());
    expect(await registerOwner(scene)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      email: 'owner@example.com',
      role: 'owner',
      orgId: null,
      disabled: false,
      tokenEpoch: 0,
      createdAtMs: 1_893_456_000_000,
      lastLoginAtMs: null,
    });
    expect(await scene.register({ email: 'second@example.com', password: GOOD_PASSWORD, address: null })).toEqual(
      fail({ kind: 'registration_closed' }),
    );
    expect(scene.audit).toEqual([
      expect.objectContaining({ eventType: 'AccountRegistered', payload: expect.objectContaining({ role: 'owner' }) }),
    ]);
    expect(scene.events).toEqual([expect.objectContaining({ change: 'registered', role: 'owner', orgId: null })]);
  });

  test.each([
    [false, 'closed'],
    [true, 'open'],
  ] as const)(
    'tells the sign-in page who may register (open registration: %s)',
    async (openRegistration, afterwards) => {
      const scene = await openScene(await newDatabase(), { openRegistration });
      const methods = async () => valueOf(await scene.signInMethods({}));
      expect(await methods()).toMatchObject({ methods: ['api_key', 'password'], registration: 'first_account' });
      await registerOwner(scene);
      expect(await methods()).toMatchObject({ methods: ['api_key', 'password'], registration: afterwards });
      await scene.postgres.close(); // what cannot be looked up is told when the form is sent
      expect(await methods()).toMatchObject({ methods: ['api_key', 'password'], registration: afterwards });
    },
  );

  test('answers who may register without the database, also after a restart', async () => {
    const database = await newDatabase();
    await registerOwner(await openScene(database));
    const { url, proxy } = await throughProxy(database);
    const scene = await openScene(url.href);
    proxy.freeze();
    const toldAfterMs = async (): Promise<number> => {
      const startMs = performance.now();
      expect(valueOf(await scene.signInMethods({}))).toMatchObject({
        methods: ['api_key', 'password'],
        registration: 'closed',
      });
      return performance.now() - startMs;
    };
    expect(await fastestMs(4_000, toldAfterMs)).toBeLessThan(4_000); // the database has five seconds to answer
  });

  test('a closed registration answers the same to anything and hashes nothing', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    for (const email of ['second@example.com', 'no address']) {
      for (const password of [GOOD_PASSWORD, 'weak'])
        expect(await scene.register({ email, password, address: null })).toEqual(fail({ kind: 'registration_closed' }));
    }
    expect(scene.hashed.filter((password) => password === GOOD_PASSWORD)).toHaveLength(1);
  });

  test('while the database is away registration is refused with that reason', async () => {
    const scene = await openScene(await newDatabase());
    await scene.postgres.close();
    expect(await scene.register({ email: 'owner@example.com', password: GOOD_PASSWORD, address: null })).toEqual(
      fail({ kind: 'store_unreachable', retryAfterSecs: 2 }),
    );
    expect(scene.events).toEqual([]);
  });

  test('open registration creates developers, one account per address in any spelling', async () => {
    const scene = await openScene(await newDatabase(), { openRegistration: true });
    await registerOwner(scene);
    expect(
      valueOf(await scene.register({ email: 'Dev@example.com', password: GOOD_PASSWORD, address: null })).role,
    ).toBe('developer');
    expect(await scene.register({ email: 'dev@EXAMPLE.com', password: GOOD_PASSWORD, address: null })).toEqual(
      fail({ kind: 'email_taken', email: 'dev@EXAMPLE.com' }),
    );
  });

  test.each([false, true])(
    'makes one of ten concurrent registrations on an empty store the owner (open: %s)',
    async (openRegistration) => {
      const scene = await openScene(await newDatabase(), { openRegistration });
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          scene.register({ email: `p${i}@example.com`, password: GOOD_PASSWORD, address: null }),
        ),
      );
      const outcomes = results.map((result) => (result.ok ? result.value.role : result.fault.kind)).sort();
      const rest = openRegistration ? 'developer' : 'registration_closed';
      expect(outcomes.filter((outcome) => outcome === 'owner')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === rest)).toHaveLength(9);
    },
  );

  test('lets one of ten concurrent registrations of one address succeed', async () => {
    const scene = await openScene(await newDatabase(), { openRegistration: true });
    const results = await Promise.all(
      Array.from({ length: 10 }, () =>
        scene.register({ email: 'same@example.com', password: GOOD_PASSWORD, address: null }),
      ),
    );
    expect(results.filter((result) => result.ok)).toHaveLength(1);
    expect(eventTypes(scene)).toEqual(['AccountRegistered']);
  });

  test('a weak password or an invalid address creates no account', async () => {
    const scene = await openScene(await newDatabase());
    expect(await scene.register({ email: 'owner@example.com', password: 'elevenchars', address: null })).toEqual(
      fail({ kind: 'weak_password', problem: 'the password must be at least 12 characters long' }),
    );
    expect(await scene.register({ email: 'owner@example.com', password: 'password1234', address: null })).toMatchObject(
      {
        fault: { kind: 'weak_password' },
      },
    );
    expect(
      await scene.register({ email: 'owner@example.com\r\nBcc: x@y.z', password: GOOD_PASSWORD, address: null }),
    ).toEqual(fail({ kind: 'invalid_argument', field: 'email', problem: 'is not a valid e-mail address' }));
    expect(await scene.context.store.read((reads) => reads.hasAccounts())).toEqual({ ok: true, value: false });
  });

  test('nothing takes effect that the audit log cannot record', async () => {
    const url = await newDatabase();
    const broken = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await broken.register({ email: 'owner@example.com', password: GOOD_PASSWORD, address: null })).toEqual(
      fail({ kind: 'audit_unavailable' }),
    );
    const scene = await openScene(url);
    expect((await registerOwner(scene)).role).toBe('owner');
    expect((await signIn(scene, 'owner@example.com')).ok).toBe(true);
  });
});
