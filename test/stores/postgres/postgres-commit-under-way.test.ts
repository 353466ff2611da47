/** The outcome of a transaction whose answer was lost (docs/reliability.md). */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { begin, verdictOn } from '../../../src/stores/postgres/commit-verdict.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../src/stores/postgres/postgres.ts';
import type { Queryable } from '../../../src/stores/postgres/queryable.ts';
import { withClient } from '../../../src/stores/trial-postgres/server.ts';
import { SILENT } from '../../support/database-server.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();

async function twoClients() {
  const url = await newDatabase();
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  await postgres.start();
  const open = async (): Promise<Queryable> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    return client as unknown as Queryable;
  };
  return [await open(), await open()] as const;
}

describe('a commit whose answer is lost', () => {
  test.each([
    ['answered', 'is known as done', ok('done')],
    ['asked', 'is known as not done', fail({ kind: 'store_unreachable', retryAfterSecs: 2 })],
  ] as const)('when it is cut as it is %s, it %s', async (at, _, answer) => {
    const direct = await newDatabase();
    const { url, proxy } = await throughProxy(direct);
    const postgres = new Postgres({ url: url.href, ...POSTGRES_DEFAULTS }, SILENT);
    onTestFinished(() => postgres.close());
    await postgres.start();
    await withClient(direct, (client) => client.query('CREATE TABLE done (n integer)'));
    proxy.cutAt('COMMIT\0', at);
    expect(await postgres.transact(async (on) => (await on.query('INSERT INTO done VALUES (1)'), ok('done')))).toEqual(
      answer,
    );
    const { rows } = await withClient(direct, (client) => client.query('SELECT n FROM done'));
    expect(rows).toHaveLength(answer.ok ? 1 : 0);
  });

  test.each([
    ['COMMIT', 'committed'],
    ['ROLLBACK', 'aborted'],
  ] as const)('is waited for while it is under way: once %s, it is %s', async (end, verdict) => {
    const [one, other] = await twoClients();
    const nonce = await begin(one);
    let known: string | undefined;
    const asked = verdictOn(nonce, other).then((answer) => {
      known = answer;
    });
    await sleep(100);
    expect(known).toBeUndefined();
    await one.query(end);
    await asked;
    expect(known).toBe(verdict);
  });

  test('cannot be done any more once it was said not to be', async () => {
    const [one, other] = await twoClients();
    const nonce = randomUUID();
    expect(await verdictOn(nonce, other)).toBe('aborted');
    await one.query('BEGIN');
    const mark = one.query('INSERT INTO commit_mark (nonce) VALUES ($1)', [nonce]);
    await expect(mark).rejects.toThrow('commit_mark_pkey');
  });

  test('is not taken for that of another transaction with the same id', async () => {
    const [one, other] = await twoClients();
    const nonce = await begin(one);
    await one.query('ROLLBACK'); // as a crash of the server that has not written it
    for (let nth = 0; nth < 5; nth += 1) {
      await begin(other);
      await other.query('COMMIT');
    }
    expect(await verdictOn(nonce, other)).toBe('aborted');
  });
});
