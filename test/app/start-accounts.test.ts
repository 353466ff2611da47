/** The accounts as main puts them together, on a real database. */
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type RunningAccounts, startAccounts } from '../../src/app/start-accounts.ts';
import { readConfig } from '../../src/config/read.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../src/stores/postgres/postgres.ts';
import { ADMIN_KEY, GOOD_PASSWORD, openScene, registerOwner, valueOf } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();
const DAY_MS = 24 * 60 * 60 * 1000;
const MUTE = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** A gateway's accounts, with its clock so far from the right time. */
async function start(url: string, aheadMs: number): Promise<RunningAccounts['useCases']> {
  const scene = await openScene(url);
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, MUTE);
  onTestFinished(() => postgres.close());
  await postgres.start();
  const accounts = startAccounts({
    ...scene.context,
    config: valueOf(readConfig({})),
    log: MUTE as never,
    database: { postgres, apiKeys: undefined as never, close: () => postgres.close() },
    clock: { nowMs: () => Date.now() + aheadMs },
  });
  valueOf(await accounts.start());
  onTestFinished(() => accounts.stop(1_000));
  return accounts.useCases;
}

describe('accounts start', () => {
  test("a gateway with its clock weeks off neither ends nor prolongs another's tokens", async () => {
    const url = await newDatabase();
    const scene = await openScene(url);
    await registerOwner(scene);
    const right = await start(url, 0);
    const credentials = { email: 'owner@example.com', password: GOOD_PASSWORD, rememberMe: false, address: null };
    const signedIn = valueOf(await right.login(credentials));
    const { inviteToken } = valueOf(
      await right.invite({ principal: ADMIN_KEY, email: 'anna@example.com', role: 'viewer', orgId: undefined }),
    );
    const rows = async (text: string): Promise<number> =>
      valueOf(await scene.postgres.attempt((on) => on.query(text))).rowCount;
    await rows(
      `INSERT INTO password_resets (digest, account_id, created_at, expires_at) SELECT 'long over', id, now(), now() - interval '1 day' FROM accounts`,
    );

    const ahead = await start(url, 30 * DAY_MS);
    await eventually(async () => expect(await rows('SELECT 1 FROM password_resets')).toBe(0)); // it prunes at the start
    const refreshed = valueOf(await ahead.refresh({ refreshToken: signedIn.refreshToken }));
    expect(
      valueOf(
        await ahead.listInvites({ principal: ADMIN_KEY, perPage: 10, cursor: undefined, orgId: undefined }),
      ).items.map(({ email }) => email),
    ).toEqual(['anna@example.com']);
    valueOf(await right.refresh({ refreshToken: refreshed.refreshToken }));
    expect(valueOf(await right.acceptInvite({ inviteToken, password: GOOD_PASSWORD })).email).toBe('anna@example.com');

    const behind = await start(url, -30 * DAY_MS);
    const old = valueOf(await behind.login(credentials));
    await rows(`UPDATE refresh_tokens SET expires_at = now() - interval '1 second'`);
    expect((await behind.refresh({ refreshToken: old.refreshToken })).ok).toBe(false);
  });

  test.runIf(process.platform === 'linux')(
    'only the four hashing threads have lower priority, so checks come first',
    async () => {
      await start(await newDatabase(), 0);
      expect(niceness().filter((nice) => nice !== getPriority())).toEqual(Array(4).fill(getPriority() + 5));
    },
  );

  /**
   * Returns the niceness of each thread of this process. The 19th field of a thread's `stat`; the second, its name, may
   * hold blanks.
   */
  const niceness = (): readonly number[] =>
    readdirSync('/proc/self/task').map((thread) =>
      Number(
        readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')[16],
      ),
    );
});
