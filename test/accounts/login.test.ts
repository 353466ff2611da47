import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import {
  eventTypes,
  GOOD_PASSWORD,
  inviteAccount,
  openScene,
  openSceneWith,
  principalOf,
  registerOwner,
  signIn,
  valueOf,
  whileUnderWay,
} from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { withTables } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';

const newDatabase = withTables();

const WRONG = fail({ kind: 'unauthenticated', detail: 'wrong e-mail or password' });
const LOCKED_15_MIN = fail({ kind: 'account_locked', retryAfterSecs: 900 });
const MINUTE_MS = 60_000;

describe('login', () => {
  test('the right password returns a token, its scopes and a 12-hour refresh token', async () => {
    const scene = await openScene(await newDatabase());
    const owner = await registerOwner(scene);
    const session = valueOf(await signIn(scene, 'owner@example.com'));
    expect(session.access).toEqual({
      token: `${owner.id}:owner:0`,
      expiresAtSecs: 1_893_456_900,
      scopes: ['read', 'write', 'admin'],
    });
    expect(session.refreshToken).toMatch(/^[\w-]{43}$/);
    expect(session.refreshLifetimeMs).toBe(43_200_000);
    expect(eventTypes(scene)).toEqual(['AccountRegistered', 'LoginSucceeded']);
    expect(scene.audit[1]).toMatchObject({
      actor: `account:${owner.id}`,
      payload: { email: 'owner@example.com', address: '192.0.2.1', remember_me: false },
    });
    expect(
      valueOf(await scene.me({ principal: { subject: `account:${owner.id}`, scopes: [], orgId: null } })).lastLoginAtMs,
    ).toBe(1_893_456_000_000);
  });

  test('a sign-in takes four database round trips, also for a wrong password or address', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const scene = await openScene(url.href);
    await registerOwner(scene);
    await Promise.all([signIn(scene, 'owner@example.com'), signIn(scene, 'owner@example.com')]); // opens connections
    proxy.delay(20);
    const tripsOf = async (password: string, email = 'owner@example.com') => {
      const before = proxy.roundTrips();
      const { ok: isIn } = await signIn(scene, email, password);
      return { isIn, trips: proxy.roundTrips() - before };
    };
    // The first of them asks two questions at once, each on a connection of its own.
    expect(await tripsOf(GOOD_PASSWORD)).toEqual({ isIn: true, trips: 1 + 4 });
    expect(await tripsOf('not that')).toEqual({ isIn: false, trips: 1 + 4 });
    expect(await tripsOf('not that', 'nobody@example.com')).toEqual({ isIn: false, trips: 1 + 4 });
  });

  test('remember_me makes it thirty days', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    expect(valueOf(await signIn(scene, 'owner@example.com', GOOD_PASSWORD, true)).refreshLifetimeMs).toBe(
      2_592_000_000,
    );
  });

  test('an address ignores letter case, width and surrounding spaces', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    for (const email of ['OWNER@Example.COM', '  owner@example.com ', 'ｏｗｎｅｒ＠example.com'])
      expect((await signIn(scene, email)).ok, email).toBe(true);
  });

  test('a password matches in any Unicode normalisation', async () => {
    const scene = await openScene(await newDatabase());
    valueOf(await scene.register({ email: 'zoe@example.com', password: 'Zoe\u0308 trinkt Kaffee', address: null }));
    expect((await signIn(scene, 'zoe@example.com', 'Zo\u00eb trinkt Kaffee')).ok).toBe(true);
  });

  test('a wrong password, an unknown and an invalid address get the same answer', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    for (const email of ['owner@example.com', 'nobody@example.com', 'no address', ''])
      expect(await signIn(scene, email, 'wrong')).toEqual(WRONG);
    expect(await signIn(scene, 'owner@example.com', 'x'.repeat(100_000))).toEqual(WRONG);
    expect(eventTypes(scene).slice(1)).toEqual([
      'LoginFailed',
      'LoginFailed',
      'LoginFailed',
      'LoginFailed',
      'LoginFailed',
    ]);
  });

  test('a failed sign-in is logged for the org of the account it named', async () => {
    const scene = await openScene(await newDatabase());
    const { id } = await inviteAccount(scene, 'dev@example.com', 'developer', 'acme');
    for (const email of ['dev@example.com', 'nobody@example.com']) await signIn(scene, email, 'wrong');
    expect(scene.audit.slice(-2)).toEqual([
      {
        eventType: 'LoginFailed',
        actor: 'anonymous',
        lineage: { orgId: 'acme', teamId: null, agentId: null },
        reason: 'wrong e-mail or password',
        payload: { account_id: id, email: 'dev@example.com', address: '192.0.2.1' },
      },
      {
        eventType: 'LoginFailed',
        actor: 'anonymous',
        lineage: { orgId: null, teamId: null, agentId: null },
        reason: 'wrong e-mail or password',
        payload: { account_id: null, email: 'nobody@example.com', address: '192.0.2.1' },
      },
    ]);
  });

  test('text typed into the wrong field never reaches the audit log', async () => {
    const scene = await openScene(await newDatabase());
    await signIn(scene, GOOD_PASSWORD, GOOD_PASSWORD);
    expect(JSON.stringify(scene.audit)).not.toContain('horse');
  });

  test.each(['owner@example.com', 'nobody@example.com'])(
    'five failures lock %s for fifteen minutes, the right password too',
    async (email) => {
      const scene = await openScene(await newDatabase());
      await registerOwner(scene);
      for (let i = 0; i < 5; i++) expect(await signIn(scene, email, 'wrong')).toEqual(WRONG);
      expect(await signIn(scene, email)).toEqual(LOCKED_15_MIN);
      scene.advance(5 * MINUTE_MS + 500);
      expect(await signIn(scene, email, 'wrong')).toEqual(fail({ kind: 'account_locked', retryAfterSecs: 600 }));
      scene.advance(10 * MINUTE_MS - 501);
      expect(await signIn(scene, email)).toEqual(fail({ kind: 'account_locked', retryAfterSecs: 1 }));
      scene.advance(1);
      expect((await signIn(scene, email)).ok).toBe(email === 'owner@example.com');
      expect(eventTypes(scene).filter((type) => type === 'AccountLocked')).toHaveLength(1);
      const isKnown = email === 'owner@example.com';
      expect(scene.events.map(({ change }) => change)).toEqual(
        isKnown ? ['registered', 'locked', 'signed_in'] : ['registered'],
      );
    },
  );

  test('an address locked while its right password is verified stays locked', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    const raced = await openSceneWith(url, scene, async () => {
      for (let i = 0; i < 5; i++) await signIn(scene, 'owner@example.com', 'wrong');
    });
    expect(await signIn(raced, 'owner@example.com')).toEqual(LOCKED_15_MIN);
    expect(await scene.postgres.attempt((on) => on.query('SELECT 1 FROM sessions'))).toMatchObject({
      value: { rowCount: 0 },
    });
  });

  test('an address is neither locked nor called locked if the audit log is unavailable', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    for (let i = 0; i < 4; i++) await signIn(scene, 'owner@example.com', 'wrong');
    const fullOnLock = {
      record: async ({ eventType }: { readonly eventType: string }) =>
        eventType === 'AccountLocked' ? fail({ kind: 'audit_unavailable' } as const) : ok(undefined),
    };
    const unlogged = await openScene(url, { audit: fullOnLock });
    expect(await signIn(unlogged, 'owner@example.com', 'wrong')).toEqual(fail({ kind: 'audit_unavailable' }));
    expect((await signIn(scene, 'owner@example.com')).ok).toBe(true);
    for (let i = 0; i < 5; i++) await signIn(scene, 'owner@example.com', 'wrong');
    const full = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await signIn(full, 'owner@example.com')).toEqual(fail({ kind: 'audit_unavailable' }));
  });

  test('a success clears the count', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 4; i++) expect(await signIn(scene, 'owner@example.com', 'wrong')).toEqual(WRONG);
      expect((await signIn(scene, 'owner@example.com')).ok).toBe(true);
    }
  });

  test('counts five of fifty concurrent wrong passwords, and one lock follows', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const answers = await Promise.all(Array.from({ length: 50 }, () => signIn(scene, 'owner@example.com', 'wrong')));
    const kinds = answers.map((answer) => (answer.ok ? 'signed in' : answer.fault.kind));
    expect(kinds.filter((kind) => kind === 'unauthenticated')).toHaveLength(5);
    expect(kinds.filter((kind) => kind === 'account_locked')).toHaveLength(45);
    expect(eventTypes(scene).filter((type) => type === 'AccountLocked')).toHaveLength(1);
    expect(await signIn(scene, 'owner@example.com')).toEqual(LOCKED_15_MIN);
  });

  test('fifty right passwords at once all sign in', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    const answers = await Promise.all(Array.from({ length: 50 }, () => signIn(scene, 'owner@example.com')));
    expect(answers.every((answer) => answer.ok)).toBe(true);
  });

  test('a hash with old parameters is renewed at the next sign-in', async () => {
    const url = await newDatabase();
    const before = await openScene(url);
    await registerOwner(before);
    const after = await openScene(url, { memoryKib: 128 });
    after.hashed.length = 0;
    expect((await signIn(after, 'owner@example.com')).ok).toBe(true);
    expect((await signIn(after, 'owner@example.com')).ok).toBe(true);
    expect(after.hashed).toEqual([GOOD_PASSWORD]);
  });

  test('nobody signs in without an audit entry, and a failed attempt leaves nothing', async () => {
    const url = await newDatabase();
    await registerOwner(await openScene(url));
    const scene = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await signIn(scene, 'owner@example.com')).toEqual(fail({ kind: 'audit_unavailable' }));
    for (let i = 0; i < 9; i++)
      expect(await signIn(scene, 'owner@example.com', 'wrong')).toEqual(fail({ kind: 'audit_unavailable' }));
    expect(await scene.postgres.attempt((on) => on.query('SELECT 1 FROM sessions'))).toMatchObject({
      value: { rowCount: 0 },
    });
  });

  test.each(['disabled', 'changed'] as const)(
    'nobody signs in to an account that is %s while the password is verified',
    async (change) => {
      const url = await newDatabase();
      const scene = await openScene(url);
      const principal = principalOf(await registerOwner(scene));
      const { id: accountId } = await inviteAccount(scene, 'dev@example.com', 'developer');
      const raced = await openSceneWith(url, scene, async () =>
        valueOf(
          await (change === 'disabled'
            ? scene.setDisabled({ principal, accountId, disabled: true })
            : scene.changeRole({ principal, accountId, role: 'viewer' })),
        ),
      );
      expect(await signIn(raced, 'dev@example.com')).toEqual(WRONG);
      expect({ eventTypes: eventTypes(raced), events: raced.events }).toEqual({ eventTypes: [], events: [] });
      expect(await scene.postgres.attempt((on) => on.query('SELECT 1 FROM sessions'))).toMatchObject({
        value: { rowCount: 0 },
      });
    },
  );

  test.each([
    ['disables it', 'disabled = true'],
    ['gives it another password', `password_hash = 'another', token_epoch = token_epoch + 1`],
  ])('nobody signs in to an account during a change that %s, or undoes that change', async (_, change) => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    expect(
      await whileUnderWay(scene, `UPDATE accounts SET ${change}`, () => signIn(scene, 'owner@example.com')),
    ).toEqual(WRONG);
    expect(
      await scene.postgres.attempt((on) =>
        on.query(`SELECT 1 FROM accounts WHERE disabled OR password_hash = 'another'`),
      ),
    ).toMatchObject({ value: { rowCount: 1 } });
    expect(await scene.postgres.attempt((on) => on.query('SELECT 1 FROM sessions'))).toMatchObject({
      value: { rowCount: 0 },
    });
  });

  test('a full crypto pool is reported and counts as no failure', async () => {
    const url = await newDatabase();
    const owner = await openScene(url);
    await registerOwner(owner);
    const overloaded = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'password hashing' } as const);
    const scene = await openScene(url, { passwords: { ...owner.context.passwords, verify: async () => overloaded } });
    for (let i = 0; i < 6; i++) expect(await signIn(scene, 'owner@example.com')).toEqual(overloaded);
    const unsigned = await openScene(url, {
      tokens: { ...owner.context.tokens, mintForAccount: async () => overloaded },
    });
    expect(await signIn(unsigned, 'owner@example.com')).toEqual(overloaded);
    expect(eventTypes(unsigned)).toEqual([]);
    expect((await signIn(owner, 'owner@example.com')).ok).toBe(true);
  });

  test('a locked address costs no more hashing', async () => {
    const url = await newDatabase();
    const first = await openScene(url);
    await registerOwner(first);
    for (let i = 0; i < 5; i++) await signIn(first, 'owner@example.com', 'wrong');
    const scene = await openScene(url, {
      passwords: { ...first.context.passwords, verify: () => Promise.reject(new Error('hashed all the same')) },
    });
    expect(await signIn(scene, 'owner@example.com')).toEqual(LOCKED_15_MIN);
  });

  test('a gateway that could not hash at start lets people in once it can', async () => {
    const url = await newDatabase();
    const { context } = await openScene(url);
    const overloaded = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'password hashing' } as const);
    const answers = [overloaded, overloaded];
    const scene = await openScene(url, {
      passwords: { ...context.passwords, hash: async (password) => answers.pop() ?? context.passwords.hash(password) },
    });
    await registerOwner(await openScene(url));
    expect(await signIn(scene, 'owner@example.com')).toEqual(overloaded);
    expect((await signIn(scene, 'owner@example.com')).ok).toBe(true);
  });

  test('while the database is away the password is not called wrong', async () => {
    const scene = await openScene(await newDatabase());
    await registerOwner(scene);
    await scene.postgres.close();
    expect(await signIn(scene, 'owner@example.com')).toEqual(fail({ kind: 'store_unreachable', retryAfterSecs: 2 }));
  });

  test('gives a network at most half of the places for sign-in and registration', async () => {
    const hashing: { readonly password: string; readonly end: () => void }[] = [];
    let isHeld = false;
    const held = (password: string, value: any) =>
      isHeld
        ? new Promise<any>((resolve) => hashing.push({ password, end: () => resolve(ok(value)) }))
        : Promise.resolve(ok(value));
    const scene = await openScene(await newDatabase(), {
      openRegistration: true,
      logins: { atOnce: 1, waiting: 7, waitMs: 10_000, what: 'sign-in' },
      passwords: {
        hash: (password) => held(password, 'hash'),
        verify: (_hash, password) => held(password, { matches: false, rehash: false }),
      },
    });
    isHeld = true;
    const full = fail({ kind: 'overloaded', what: 'sign-in', retryAfterSecs: 1 });
    const asks = [
      (address: string, password: string) =>
        scene.login({ email: 'a@example.com', password, rememberMe: false, address }),
      (address: string, password: string) =>
        scene.register({ email: `${password.replaceAll(' ', '-')}@example.com`, password, address }),
    ];
    for (const ask of asks) {
      const before = hashing.length;
      const many = [1, 2, 3, 4].map((nth) => ask(`2001:db8:1:2::${nth}`, `password number ${nth}`));
      expect(await ask('2001:db8:1:2::5', 'password number 5')).toEqual(full);
      const other = ask('2001:db8:1:3::1', 'password of another');
      for (const password of [
        'password number 1',
        'password of another',
        'password number 2',
        'password number 3',
        'password number 4',
      ]) {
        await eventually(() => expect(hashing.at(-1)?.password).toBe(password));
        hashing.at(-1)!.end();
      }
      expect(
        (await Promise.all([...many, other])).filter((result) => !result.ok && result.fault.kind === 'overloaded'),
      ).toEqual([]);
      expect(hashing.length - before).toBe(5);
    }
  });
});
