import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import {
  ADMIN_KEY,
  eventTypes,
  GOOD_PASSWORD,
  inviteAccount,
  openScene,
  openSceneWith,
  principalOf,
  registerOwner,
  type Scene,
  START_MS,
  signIn,
  valueOf,
} from '../support/accounts.ts';
import { withTables } from '../support/postgres.ts';
import { throughProxy } from '../support/proxy.ts';

const newDatabase = withTables();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ENDED = fail({ kind: 'unauthenticated', detail: 'the session is unknown or has ended; sign in again' });
const AWAY = fail({ kind: 'store_unreachable', retryAfterSecs: 2 });

async function signedIn(rememberMe = false): Promise<{ scene: Scene; refreshToken: string }> {
  const scene = await openScene(await newDatabase());
  await registerOwner(scene);
  const { refreshToken } = valueOf(await signIn(scene, 'owner@example.com', GOOD_PASSWORD, rememberMe));
  return { scene, refreshToken };
}

describe('sessions', () => {
  test('a refresh returns a new token and a new cookie each time', async () => {
    const { scene, refreshToken } = await signedIn();
    const first = valueOf(await scene.refresh({ refreshToken }));
    const second = valueOf(await scene.refresh({ refreshToken: first.refreshToken }));
    expect(new Set([refreshToken, first.refreshToken, second.refreshToken]).size).toBe(3);
    expect(second.refreshLifetimeMs).toBe(12 * HOUR_MS);
    expect(second.access.scopes).toEqual(['read', 'write', 'admin']);
    expect(eventTypes(scene).slice(2)).toEqual(['TokenIssued', 'TokenIssued']);
  });

  test.each([
    [false, 12 * HOUR_MS],
    [true, 30 * DAY_MS],
  ])(
    'an unused session ends after its lifetime, a used one continues (remember: %s)',
    async (rememberMe, lifetimeMs) => {
      const { scene, refreshToken } = await signedIn(rememberMe);
      scene.advance(lifetimeMs - 1);
      const next = valueOf(await scene.refresh({ refreshToken }));
      scene.advance(lifetimeMs - 1);
      const last = valueOf(await scene.refresh({ refreshToken: next.refreshToken }));
      scene.advance(lifetimeMs);
      expect(await scene.refresh({ refreshToken: last.refreshToken })).toEqual(ENDED);
    },
  );

  test('reusing an exchanged cookie ends the session for everybody', async () => {
    const { scene, refreshToken } = await signedIn();
    const next = valueOf(await scene.refresh({ refreshToken }));
    expect(await scene.refresh({ refreshToken })).toEqual(ENDED);
    expect(await scene.refresh({ refreshToken: next.refreshToken })).toEqual(ENDED);
    expect(eventTypes(scene).filter((type) => type === 'SessionRevoked')).toHaveLength(1);
    expect(scene.audit.at(-1)).toMatchObject({ eventType: 'SessionRevoked', actor: 'anonymous' });
  });

  test('reusing an exchanged cookie past its lifetime still ends the live session', async () => {
    const { scene, refreshToken } = await signedIn();
    scene.advance(11 * HOUR_MS);
    const next = valueOf(await scene.refresh({ refreshToken }));
    scene.advance(11 * HOUR_MS);
    expect(await scene.refresh({ refreshToken })).toEqual(ENDED);
    expect(await scene.refresh({ refreshToken: next.refreshToken })).toEqual(ENDED);
    expect(scene.audit.at(-1)).toMatchObject({ eventType: 'SessionRevoked', actor: 'anonymous' });
  });

  test('other sessions of the account continue', async () => {
    const { scene, refreshToken } = await signedIn();
    const other = valueOf(await signIn(scene, 'owner@example.com'));
    await scene.refresh({ refreshToken });
    expect(await scene.refresh({ refreshToken })).toEqual(ENDED);
    expect((await scene.refresh({ refreshToken: other.refreshToken })).ok).toBe(true);
  });

  test('answer exactly one of ten concurrent refreshes with one cookie', async () => {
    const { scene, refreshToken } = await signedIn();
    const answers = await Promise.all(Array.from({ length: 10 }, () => scene.refresh({ refreshToken })));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
    expect(answers.filter((answer) => !answer.ok)).toEqual(Array.from({ length: 9 }, () => ENDED));
    expect(eventTypes(scene).filter((type) => type === 'SessionRevoked')).toHaveLength(1);
  });

  test('end for both when two refreshes with one cookie race', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    const { refreshToken } = valueOf(await signIn(scene, 'owner@example.com'));
    let faster = '';
    const slower = await openSceneWith(
      url,
      scene,
      async () => void (faster = valueOf(await scene.refresh({ refreshToken })).refreshToken),
    );
    expect(await slower.refresh({ refreshToken })).toEqual(ENDED);
    expect(slower.audit).toEqual([expect.objectContaining({ eventType: 'SessionRevoked', actor: 'anonymous' })]);
    expect(await scene.refresh({ refreshToken: faster })).toEqual(ENDED);
  });

  test('a logout ends the session, with an old cookie too; without one it succeeds', async () => {
    const { scene, refreshToken } = await signedIn();
    const next = valueOf(await scene.refresh({ refreshToken }));
    expect((await scene.logout({ refreshToken })).ok).toBe(true);
    expect(await scene.refresh({ refreshToken: next.refreshToken })).toEqual(ENDED);
    expect((await scene.logout({ refreshToken })).ok).toBe(true);
    // The second looks like one: it may be of a session so old that it was deleted.
    for (const unknown of ['nonsense', 'x'.repeat(43)])
      expect((await scene.logout({ refreshToken: unknown })).ok).toBe(true);
    expect((await scene.logout({ refreshToken: undefined })).ok).toBe(true);
    expect(scene.audit.filter((draft) => draft.eventType === 'SessionRevoked').map((draft) => draft.reason)).toEqual([
      'logout',
    ]);
  });

  test('an unknown cookie is refused', async () => {
    const { scene } = await signedIn();
    for (const refreshToken of ['', 'x', 'A'.repeat(43), 'A'.repeat(1_000_000)])
      expect(await scene.refresh({ refreshToken })).toEqual(ENDED);
  });

  test('a refresh or a logout that fails keeps the cookie valid', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    const { refreshToken } = valueOf(await signIn(scene, 'owner@example.com'));
    const overloaded = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'token signing' } as const);
    const busy = await openScene(url, { tokens: { ...scene.context.tokens, mintForAccount: async () => overloaded } });
    const unlogged = await openScene(url, { audit: { record: async () => fail({ kind: 'audit_unavailable' }) } });
    expect(await busy.refresh({ refreshToken })).toEqual(overloaded);
    expect(await unlogged.refresh({ refreshToken })).toEqual(fail({ kind: 'audit_unavailable' }));
    expect(await unlogged.logout({ refreshToken })).toEqual(fail({ kind: 'audit_unavailable' }));
    expect((await scene.refresh({ refreshToken })).ok).toBe(true);
    // Nor does one that was exchanged already end a session that nobody would know the end of.
    expect(await unlogged.refresh({ refreshToken })).toEqual(fail({ kind: 'audit_unavailable' }));
  });

  test('a commit whose answer is lost ends no session and loses no invite', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const scene = await openScene(url.href);
    const { inviteToken } = valueOf(
      await scene.invite({ principal: ADMIN_KEY, email: 'dev@example.com', role: 'developer', orgId: undefined }),
    );
    proxy.cutAt('COMMIT\0', 'answered');
    expect(valueOf(await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).email).toBe('dev@example.com');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    proxy.cutAt('COMMIT\0', 'answered');
    const next = valueOf(await scene.refresh({ refreshToken }));
    proxy.cutAt('COMMIT\0', 'asked');
    expect(await scene.refresh({ refreshToken: next.refreshToken })).toEqual(AWAY);
    expect((await scene.refresh({ refreshToken: next.refreshToken })).ok).toBe(true);
  });

  test('an account changed during a refresh gets no old token and keeps its cookie', async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    const principal = principalOf(await registerOwner(scene));
    const { id: accountId } = await inviteAccount(scene, 'dev@example.com', 'developer');
    const { refreshToken } = valueOf(await signIn(scene, 'dev@example.com'));
    const demoted = await openSceneWith(url, scene, async () =>
      valueOf(await scene.changeRole({ principal, accountId, role: 'viewer' })),
    );
    expect(await demoted.refresh({ refreshToken })).toEqual(
      fail({ kind: 'conflict', detail: 'the account was just changed; try again' }),
    );
    const next = valueOf(await scene.refresh({ refreshToken }));
    expect(next.access.scopes).toEqual(['read']);
    const disabled = await openSceneWith(url, scene, async () =>
      valueOf(await scene.setDisabled({ principal, accountId, disabled: true })),
    );
    expect(await disabled.refresh({ refreshToken: next.refreshToken })).toEqual(ENDED);
  });

  test('an outage of the database is never reported as an ended session', async () => {
    const { scene, refreshToken } = await signedIn();
    await scene.postgres.close();
    expect(await scene.refresh({ refreshToken })).toEqual(AWAY);
    expect(await scene.logout({ refreshToken })).toEqual(AWAY);
    // These need no question to the store: there is no session to end.
    for (const none of [undefined, 'nonsense']) expect((await scene.logout({ refreshToken: none })).ok).toBe(true);
  });

  test('the database holds no secret that signs anybody in', async () => {
    const { scene, refreshToken } = await signedIn();
    const { rows } = valueOf(
      await scene.postgres.attempt((on) =>
        on.query(
          `SELECT r.digest, s.*, a.* FROM refresh_tokens r JOIN sessions s ON s.id = r.session_id JOIN accounts a ON a.id = s.account_id`,
        ),
      ),
    );
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(refreshToken);
    expect(JSON.stringify(rows)).not.toContain(GOOD_PASSWORD);
  });

  test('pruning removes what has ended and keeps the rest', async () => {
    const { scene, refreshToken } = await signedIn();
    await signIn(scene, 'nobody@example.com', 'wrong');
    const remembered = valueOf(await signIn(scene, 'owner@example.com', GOOD_PASSWORD, true));
    scene.advance(3 * DAY_MS);
    valueOf(await scene.accounts.prune());
    const count = async (table: string) =>
      valueOf(await scene.postgres.attempt((on) => on.query(`SELECT 1 FROM ${table}`))).rowCount;
    expect({
      countSessions: await count('sessions'),
      countRefreshTokens: await count('refresh_tokens'),
      countSignInFailures: await count('sign_in_failures'),
    }).toEqual({ countSessions: 1, countRefreshTokens: 1, countSignInFailures: 0 });
    expect(await scene.refresh({ refreshToken })).toEqual(ENDED);
    expect((await scene.refresh({ refreshToken: remembered.refreshToken })).ok).toBe(true);
  });

  test('a clock that was ahead for a while has pruned nothing that is still valid', async () => {
    const { scene, refreshToken } = await signedIn();
    const { inviteToken } = valueOf(
      await scene.invite({ principal: ADMIN_KEY, email: 'dev@example.com', role: 'viewer', orgId: undefined }),
    );
    for (let time = 0; time < 5; time += 1) await signIn(scene, 'nobody@example.com', 'wrong');
    const pruneAhead = async (ms: number) => {
      scene.advance(ms);
      valueOf(await scene.accounts.prune());
      scene.advance(-ms);
    };
    await pruneAhead(20 * HOUR_MS);
    expect(await signIn(scene, 'nobody@example.com')).toEqual(fail({ kind: 'account_locked', retryAfterSecs: 900 }));
    expect((await scene.refresh({ refreshToken })).ok).toBe(true);
    await pruneAhead(8 * DAY_MS);
    expect((await scene.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).ok).toBe(true);
  });

  test('pruning finishes in small steps after a long pause, beside another gateway', async () => {
    const url = await newDatabase();
    const [scene, other] = [await openScene(url), await openScene(url)];
    const owner = await registerOwner(scene);
    valueOf(
      await scene.postgres.attempt((on) =>
        on.query(
          `WITH s AS (INSERT INTO sessions (id, account_id, remember_me, created_at) SELECT 's' || n, $1, false, now() FROM generate_series(1, 2500) n RETURNING id)
     INSERT INTO refresh_tokens (digest, session_id, expires_at) SELECT id || '-' || n, id, $2::timestamptz FROM s, generate_series(1, 2) n`,
          [owner.id, new Date(START_MS)],
        ),
      ),
    );
    scene.advance(2 * DAY_MS);
    other.advance(2 * DAY_MS);
    const lock = `SELECT 1 FROM refresh_tokens WHERE digest = 's1-1' FOR UPDATE`; // somebody comes back with a cookie of long ago
    valueOf(
      await scene.postgres.transact(async (on) => {
        await on.query(lock);
        return scene.accounts.prune();
      }),
    );
    const done = await Promise.all([
      scene.accounts.prune(),
      other.accounts.prune(),
      signIn(scene, 'owner@example.com'),
      scene.accounts.prune(),
    ]);
    expect(done.map((result) => result.ok)).toEqual([true, true, true, true]);
    valueOf(await scene.accounts.prune()); // what one had left to the other
    const count = async (table: string) =>
      valueOf(await scene.postgres.attempt((on) => on.query(`SELECT 1 FROM ${table}`))).rowCount;
    expect({ countSessions: await count('sessions'), countRefreshTokens: await count('refresh_tokens') }).toEqual({
      countSessions: 1,
      countRefreshTokens: 1,
    });
  });
});
