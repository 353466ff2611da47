import { describe, expect, onTestFinished, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../src/stores/postgres/postgres.ts';
import { withClient } from '../../../src/stores/trial-postgres/server.ts';
import { SILENT } from '../../support/database-server.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();

describe('postgres commit under way', () => {
  test.each([
    ['committed', 'the caller learns that it is done', ok('done')],
    ['aborted', 'the caller learns that nothing is done', fail({ kind: 'store_unreachable', retryAfterSecs: 2 })],
  ] as const)('a commit cut off under way is queried until it has ended: once %s, %s', async (verdict, _, answer) => {
    const direct = await newDatabase();
    await withClient(direct, (client) =>
      client.query(`
    CREATE SEQUENCE times_asked;
    CREATE FUNCTION pg_xact_status(xid8) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN nextval('times_asked') < 3 THEN 'in progress' ELSE '${verdict}' END $$`),
    );
    const { url, proxy } = await throughProxy(direct);
    url.searchParams.set('options', '-c search_path=public,pg_catalog');
    const postgres = new Postgres({ url: url.href, ...POSTGRES_DEFAULTS }, SILENT);
    onTestFinished(() => postgres.close());
    await postgres.start();
    proxy.cutAt('COMMIT\0', 'asked');
    expect(await postgres.transact(async (on) => (await on.query('SELECT 1'), ok('done')))).toEqual(answer);
    expect(
      await withClient(direct, async (client) => (await client.query('SELECT last_value FROM times_asked')).rows),
    ).toEqual([{ last_value: '3' }]);
  });
});
