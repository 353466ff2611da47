import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { MigrationError, migrate, schemaTrouble, UNIQUE_COLUMNS } from '../../../src/stores/postgres/migrate.ts';
import { POSTGRES_DEFAULTS, Postgres, type PostgresOptions } from '../../../src/stores/postgres/postgres.ts';
import { SILENT, startTestPostgres } from '../../support/database-server.ts';
import { eventually } from '../../support/eventually.ts';
import { fastestMs } from '../../support/fastest.ts';
import { folderForDatabase, layDatabase, withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();

function open(url: string, overrides: Partial<PostgresOptions> = {}): Postgres {
  const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS, ...overrides }, SILENT);
  onTestFinished(() => postgres.close());
  return postgres;
}

async function connect(url: string, onceOver = onTestFinished): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onceOver(() => client.end());
  return client;
}

describe('postgres', () => {
  test('ten gateways that start together apply each migration once', async () => {
    const url = await newDatabase({ isEmpty: true });
    await Promise.all(Array.from({ length: 10 }, () => open(url).start()));
    const { rows } = await (await connect(url)).query('SELECT number, name FROM svc_migrations ORDER BY number');
    expect(rows[0]).toEqual({ number: 1, name: 'accounts' });
    expect(new Set(rows.map((row) => row.number)).size).toBe(rows.length);
  });

  test('a database is refused for each missing table and each missing unique column', async () => {
    const client = await connect(await newDatabase());
    const { rows } = await client.query<{ name: string; columns: readonly string[] }>(
      `SELECT tablename AS name, ARRAY(
       SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE indrelid = tablename::regclass AND indnkeyatts = 1 AND indisunique AND indpred IS NULL AND attidentity = '' ORDER BY attname) AS columns
       FROM pg_tables WHERE schemaname = 'public'`,
    );
    const made = Object.fromEntries(rows.map(({ name, columns }) => [name, columns]));
    expect(made).toEqual(
      Object.fromEntries(Object.entries(UNIQUE_COLUMNS).map(([name, columns]) => [name, [...columns].sort()])),
    );
  });

  test('a migration that fails leaves no trace of itself or of those before', async () => {
    const client = await connect(await newDatabase({ isEmpty: true }));
    const steps = [
      { number: 1, name: 'good', sql: 'CREATE TABLE good (n int)' },
      { number: 2, name: 'bad', sql: 'CREATE TABLE bad (n int); SELECT nonsense' },
    ];
    await expect(migrate(client, steps)).rejects.toThrow('nonsense');
    const { rows } = await client.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    expect(rows).toEqual([]);
  });

  test('a database migrated by a newer gateway is refused', async () => {
    const client = await connect(await newDatabase({ isEmpty: true }));
    const step = { number: 1, name: 'first', sql: 'SELECT 1' };
    expect(await migrate(client, [step])).toEqual([1]);
    expect(await migrate(client, [step])).toEqual([]);
    await migrate(client, [step, { number: 2, name: 'second', sql: 'SELECT 1' }]);
    await expect(migrate(client, [step])).rejects.toThrow(MigrationError);
  });

  test('a database migrated by a newer gateway is used where the step tolerates it', async () => {
    const client = await connect(await newDatabase({ isEmpty: true }));
    const noop = (number: number) => ({ number, name: `step ${number}`, sql: 'SELECT 1' });
    const place = { ...noop(2), sql: 'ALTER TABLE svc_migrations ADD COLUMN tolerated_since integer' };
    await migrate(client, [noop(1), place, { ...noop(3), toleratedSince: 2 }, { ...noop(4), toleratedSince: 3 }]);
    await expect(migrate(client, [noop(1), place])).rejects.toThrow(
      'the database has migration 4, but this gateway knows only 2; run a newer gateway',
    );
    expect(await migrate(client, [noop(1), place, noop(3)])).toEqual([]);
  });

  test('a transaction that ends in a fault or an exception is rolled back', async () => {
    const postgres = open(await newDatabase());
    await postgres.attempt((on) => on.query('CREATE TABLE t (n int)'));
    const insert = 'INSERT INTO t VALUES (1)';
    await postgres.transact(async (on) => (await on.query(insert), fail({ kind: 'internal' })));
    await expect(
      postgres.transact(async (on) => {
        await on.query(insert);
        throw new Error('a bug');
      }),
    ).rejects.toThrow('a bug');
    expect(await postgres.attempt(async (on) => (await on.query('SELECT n FROM t')).rows)).toEqual(ok([]));
    await postgres.transact(async (on) => (await on.query(insert), ok(undefined)));
    expect(await postgres.attempt(async (on) => (await on.query('SELECT n FROM t')).rows)).toEqual(ok([{ n: 1 }]));
  });

  test.each([
    ['answered', 'the caller learns that it is done', ok('done'), 1],
    ['asked for', 'the caller learns that nothing is done', fail({ kind: 'store_unreachable', retryAfterSecs: 2 }), 0],
  ] as const)('when the connection is cut as a commit is %s, %s', async (when, _, answer, rowsLeft) => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const postgres = open(url.href, { maxConnections: 1 });
    await postgres.attempt((on) => on.query('CREATE TABLE t (n int)'));
    proxy.cutAt('COMMIT\0', when === 'answered' ? when : 'asked');
    expect(await postgres.transact(async (on) => (await on.query('INSERT INTO t VALUES (1)'), ok('done')))).toEqual(
      answer,
    );
    expect(await postgres.attempt(async (on) => (await on.query('SELECT n FROM t')).rowCount)).toEqual(ok(rowsLeft));
  });

  test('a commit unknown to the server after a fail-over is reported as not done', async () => {
    const direct = await newDatabase();
    // An id that no transaction of this server has reached stands for one that only the server before it has given.
    await (await connect(direct)).query(`CREATE FUNCTION pg_current_xact_id() RETURNS xid8 RETURN '999999999'::xid8`);
    const { url, proxy } = await throughProxy(direct);
    url.searchParams.set('options', '-c search_path=public,pg_catalog');
    const postgres = open(url.href);
    await postgres.attempt((on) => on.query('CREATE TABLE t (n int)'));
    proxy.cutAt('COMMIT\0', 'asked');
    expect(await postgres.transact(async (on) => (await on.query('INSERT INTO t VALUES (1)'), ok('done')))).toEqual(
      fail({ kind: 'store_unreachable', retryAfterSecs: 2 }),
    );
  });

  test('a slow statement is cancelled, and its connection is used again', async () => {
    const postgres = open(await newDatabase(), { maxConnections: 1, statementTimeoutMs: 200 });
    expect(await postgres.attempt((on) => on.query('SELECT pg_sleep(5)'))).toEqual(
      fail({ kind: 'store_unreachable', retryAfterSecs: 2 }),
    );
    expect(await postgres.attempt(async (on) => (await on.query('SELECT 1 AS one')).rows)).toEqual(ok([{ one: 1 }]));
  });

  test('fifty callers wait for each connection, and the next is refused at once', async () => {
    const url = await newDatabase();
    const [postgres, other] = [open(url, { maxConnections: 1 }), await connect(url)];
    await postgres.start();
    await other.query('SELECT pg_advisory_lock(1)');
    const ask = () => postgres.attempt((on) => on.query('SELECT pg_advisory_xact_lock_shared(1)'));
    const waiting = Array.from({ length: 51 }, ask);
    const first = await Promise.race([ask(), ...waiting.map(async (answer) => (await answer, 'in its turn'))]);
    expect(first).toEqual(fail({ kind: 'store_unreachable', retryAfterSecs: 2 }));
    await other.query('SELECT pg_advisory_unlock(1)');
    expect((await Promise.all(waiting)).map((result) => result.ok)).toEqual(waiting.map(() => true));
  });

  test.concurrent('logs an outage once, and its end once nothing fails any more', async ({
    onTestFinished: onceOver,
  }) => {
    const lines: string[] = [];
    const log = {
      info: (line: string) => void lines.push(line),
      warn: (line: string, fields?: object) => void lines.push(`${line}: ${Object.values(fields ?? {}).join()}`),
    };
    const postgres = new Postgres({ url: await newDatabase(), ...POSTGRES_DEFAULTS, statementTimeoutMs: 100 }, log);
    onceOver(() => postgres.close());
    await postgres.start();
    lines.length = 0;
    for (let time = 0; time < 5; time += 1) {
      expect((await postgres.attempt((on) => on.query('SELECT pg_sleep(5)'))).ok).toBe(false);
      expect((await postgres.attempt((on) => on.query('SELECT 1'))).ok).toBe(true);
    }
    expect(lines).toEqual(['the database does not respond: canceling statement due to statement timeout']);
    await eventually(() => expect(lines.slice(1)).toEqual(['the database responds again']));
  });

  test.concurrent('logs what keeps an outage going as well as what began it', async ({ onTestFinished: onceOver }) => {
    const url = await newDatabase();
    const lines: string[] = [];
    const log = {
      info: () => undefined,
      warn: (line: string, fields?: object) => void lines.push(`${line}: ${Object.values(fields ?? {}).join()}`),
    };
    const postgres = new Postgres({ url, ...POSTGRES_DEFAULTS }, log);
    onceOver(() => postgres.close());
    await postgres.start();
    const other = await connect(url, onceOver);
    const during = postgres.attempt((on) => on.query('SELECT pg_sleep(5)'));
    const asleep = `FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()`;
    await eventually(async () => expect((await other.query(`SELECT 1 ${asleep}`)).rowCount).toBe(1));
    await other.query(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on; SELECT pg_terminate_backend(pid) ${asleep}`,
    );
    expect((await during).ok).toBe(false);
    await eventually(() =>
      expect(lines).toEqual([
        'the database does not respond: terminating connection due to administrator command',
        'the database still does not respond: it is read-only',
      ]),
    );
  });

  test.concurrent('a start that the database rejects says so, and continues once it is accepted', async ({
    onTestFinished: onceOver,
  }) => {
    const url = await newDatabase();
    const admin = await connect(url, onceOver);
    onceOver(async () => {
      await admin.query('DROP DATABASE IF EXISTS late WITH (FORCE)');
      await admin.query('DROP ROLE IF EXISTS late');
    });
    const asLate = Object.assign(new URL(url), { username: 'late', password: 'secret', pathname: '/late' });
    const lines: string[] = [];
    const log = {
      info: () => undefined,
      warn: (line: string, fields?: object) => void lines.push(`${line}: ${Object.values(fields ?? {}).join()}`),
    };
    const postgres = new Postgres({ url: asLate.href, ...POSTGRES_DEFAULTS }, log);
    onceOver(() => postgres.close());
    const started = postgres.start();
    const ADVICE = 'check the user, password and database in SVC_DATABASE_URL';
    await eventually(() =>
      expect(lines).toEqual([
        `the database refuses to let the gateway in: password authentication failed for user "late"; ${ADVICE}`,
      ]),
    );
    await admin.query(`CREATE ROLE late LOGIN PASSWORD 'secret'`);
    await eventually(() => expect(postgres.trouble).toBe(`database "late" does not exist; ${ADVICE}`));
    await admin.query('CREATE DATABASE late OWNER late');
    await started;
    expect((await postgres.attempt((on) => on.query('SELECT 1'))).ok).toBe(true);
  });

  test.concurrent('logs a changed database password as a rejection, not as a silent server', async ({
    onTestFinished: onceOver,
  }) => {
    const url = await newDatabase({ isEmpty: true });
    const admin = await connect(url, onceOver);
    await admin.query(`CREATE ROLE changed LOGIN PASSWORD 'first'; GRANT CREATE, USAGE ON SCHEMA public TO changed`);
    onceOver(async () => {
      await admin.query('DROP OWNED BY changed CASCADE; DROP ROLE changed');
    });
    const lines: string[] = [];
    const log = {
      info: () => undefined,
      warn: (line: string, fields?: object) => void lines.push(`${line}: ${Object.values(fields ?? {}).join()}`),
    };
    const postgres = new Postgres(
      { url: Object.assign(new URL(url), { username: 'changed', password: 'first' }).href, ...POSTGRES_DEFAULTS },
      log,
    );
    onceOver(() => postgres.close());
    await postgres.start();
    const during = postgres.attempt((on) => on.query('SELECT pg_sleep(5)'));
    const asleep = `FROM pg_stat_activity WHERE usename = 'changed' AND query LIKE '%pg_sleep%'`;
    await eventually(async () => expect((await admin.query(`SELECT 1 ${asleep}`)).rowCount).toBe(1));
    await admin.query(`ALTER ROLE changed PASSWORD 'second'`);
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'changed'`);
    expect((await during).ok).toBe(false);
    await eventually(() =>
      expect(lines).toEqual([
        'the database does not respond: terminating connection due to administrator command',
        'the database refuses to let the gateway in: password authentication failed for user "changed"; check the user, password and database in SVC_DATABASE_URL',
      ]),
    );
  });

  test('idle connections closed by a proxy or pooler are not an outage', async () => {
    const url = await newDatabase();
    const postgres = open(url);
    await postgres.start();
    await Promise.all(Array.from({ length: 10 }, () => postgres.attempt((on) => on.query('SELECT pg_sleep(0.1)'))));
    const other = await connect(url);
    const ofTheGateway = `FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'svc-gateway'`;
    const ended = (
      await other.query(`SELECT pid, pg_terminate_backend(pid) ${ofTheGateway} AND state = 'idle'`)
    ).rows.map(({ pid }) => pid);
    expect(ended.length).toBeGreaterThan(1);
    await eventually(async () =>
      expect((await other.query(`SELECT 1 ${ofTheGateway} AND pid <> ALL ($1)`, [ended])).rowCount).toBe(1),
    );
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
    expect(postgres.isAway).toBe(false);
  });

  test('a read-only database, such as a standby, is not ready', async () => {
    const url = await newDatabase();
    const postgres = open(url);
    await postgres.start();
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
    const other = await connect(url);
    const setReadOnly = (value: string) =>
      other.query(`
    ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = ${value};
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`);
    await setReadOnly('on');
    await eventually(async () =>
      expect(await postgres.attempt(async (on) => (await on.query('SELECT 1 AS one')).rows)).toEqual(ok([{ one: 1 }])),
    );
    await eventually(async () => {
      expect(await postgres.isReachable()).toBe(false);
      expect(postgres.trouble).toBe('it is read-only');
    });
    await other.query('SET default_transaction_read_only = off');
    await setReadOnly('off');
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
  });

  test('leaves a server made read-only by a fail-over for its successor', async () => {
    const postgres = open(await newDatabase(), { maxConnections: 3 });
    await postgres.start();
    // These three sessions stand for the old server: new ones take writes. Each is kept until there are three.
    let demoted = 0;
    const demote = () =>
      postgres.attempt(async (on) => {
        await on.query(`SELECT set_config('default_transaction_read_only', 'on', false)`);
        demoted += 1;
        await eventually(() => expect(demoted).toBe(3));
      });
    expect((await Promise.all([demote(), demote(), demote()])).every((result) => result.ok)).toBe(true);
    expect(await postgres.isReachable()).toBe(false);
    expect(postgres.trouble).toBe('it is read-only');
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
  });

  test('a pooler that refuses time-outs from clients, as PgBouncer, still applies them', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    proxy.refuseFrom('_timeout\0'); // what connects sends names and values so, and a statement does not
    const postgres = open(url.href);
    await postgres.start();
    expect(
      await postgres.attempt(
        async (on) =>
          (
            await on.query(`
    SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock, current_setting('idle_in_transaction_session_timeout') AS idle`)
          ).rows,
      ),
    ).toEqual(ok([{ statement: '5s', lock: '5s', idle: '10s' }]));
  });

  test('readiness is known within a second, also when the database is silent', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const postgres = open(url.href);
    await postgres.start();
    expect(await postgres.isReachable()).toBe(true);
    const knownAfterMs = async (): Promise<number> => {
      proxy.freeze();
      const askedMs = performance.now();
      expect(await Promise.all(Array.from({ length: 20 }, () => postgres.isReachable()))).not.toContain(true);
      const tookMs = performance.now() - askedMs;
      proxy.thaw();
      await eventually(async () => expect(await postgres.isReachable()).toBe(true));
      return tookMs;
    };
    expect(await fastestMs(1_000, knownAfterMs)).toBeLessThan(1_000);
  });

  test('a distant database is ready', async () => {
    const { url, proxy } = await throughProxy(await newDatabase());
    const postgres = open(url.href);
    await postgres.start();
    const isInTheEnd = () => eventually(async () => expect(await postgres.isReachable()).toBe(true));
    await isInTheEnd();
    proxy.delay(125);
    await eventually(async () => {
      const isAtOnce = await postgres.isReachable();
      if (!isAtOnce) await isInTheEnd(); // or the next call would hear what comes of this probe
      expect(isAtOnce).toBe(true);
    });
  });

  test('a mistake in a statement is a bug, not an outage', async () => {
    const postgres = open(await newDatabase());
    await expect(postgres.attempt((on) => on.query('SELEKT 1'))).rejects.toThrow('syntax error');
  });

  test('a database that goes away is a fault meanwhile, and is used again when back', async () => {
    const dataDir = folderForDatabase();
    await layDatabase(dataDir);
    const server = await startTestPostgres({ dataDir });
    const postgres = new Postgres({ url: server.url, ...POSTGRES_DEFAULTS }, SILENT);
    onTestFinished(async () => {
      await postgres.close();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    });
    await postgres.start();
    const pid = Number((await readFile(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[0]);
    const during = postgres.transact(async (on) => {
      process.kill(pid, 'SIGKILL');
      await on.query('SELECT pg_sleep(3)');
      return ok('answered');
    });
    expect(await during).toEqual(fail({ kind: 'store_unreachable', retryAfterSecs: 2 }));
    expect(await postgres.isReachable()).toBe(false);
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
  });

  test('tables missing during a restore are an outage and not a bug', async () => {
    const url = await newDatabase();
    const postgres = open(url);
    await postgres.start();
    const other = await connect(url);
    const count = () =>
      postgres.attempt(async (on) => (await on.query('SELECT count(*)::int AS accounts FROM accounts')).rows);
    await other.query('ALTER SCHEMA public RENAME TO away');
    expect(await count()).toEqual(fail({ kind: 'store_unreachable', retryAfterSecs: 2 }));
    await other.query('ALTER SCHEMA away RENAME TO public');
    expect(await count()).toEqual(ok([{ accounts: 0 }]));
  });

  test.each([
    [
      'nothing',
      'DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC',
      'it has no tables; restore a backup, or restart the gateway to start with an empty database',
      undefined,
    ],
    [
      'part of the tables',
      'DROP TABLE password_resets, refresh_tokens',
      'it lacks the table refresh_tokens, password_resets; restore a complete backup',
      'same',
    ],
    [
      'tables without an index',
      'ALTER TABLE accounts DROP CONSTRAINT accounts_email_key_key',
      'it lacks the unique index on accounts.email_key; restore a complete backup, and if it is from an older release, restart the gateway',
      'same',
    ],
    [
      'tables without a column',
      'ALTER TABLE invites DROP COLUMN revoked_at',
      'it lacks the column invites.revoked_at; restore a complete backup, and if it is from an older release, restart the gateway',
      'same',
    ],
    [
      'those of an older release',
      'ALTER TABLE invites DROP COLUMN id, DROP COLUMN sequence, DROP COLUMN revoked_at; DELETE FROM svc_migrations WHERE number = 4',
      'it lacks the unique index on invites.id; restore a complete backup, and if it is from an older release, restart the gateway',
      undefined,
    ],
    [
      'tables of another owner',
      'REVOKE ALL ON sessions FROM granted',
      'permission denied for table sessions; grant SELECT, INSERT, UPDATE and DELETE on all tables to granted',
      'same',
    ],
  ])('a database with %s is not ready until repaired, and says how', async (_, damage, trouble, atStart) => {
    const whole = await newDatabase();
    const owner = await connect(whole);
    await owner.query(
      `DO $$ BEGIN CREATE ROLE granted LOGIN PASSWORD 'granted'; EXCEPTION WHEN duplicate_object THEN END $$; GRANT ALL ON ALL TABLES IN SCHEMA public TO granted`,
    );
    const url = new URL(whole);
    url.username = url.password = 'granted';
    const postgres = open(url.href);
    await postgres.start();
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));

    await owner.query('BEGIN');
    await owner.query(damage);
    await owner.query('COMMIT');
    await eventually(async () => {
      expect(await postgres.isReachable()).toBe(false);
      expect(postgres.trouble).toBe(trouble);
    });
    if (atStart === 'same') await expect(open(url.href).start()).rejects.toThrow(trouble);

    await owner.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC');
    await migrate(owner);
    await owner.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO granted');
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
  });

  test('each column of the migrations is missed where it is absent', async () => {
    const client = await connect(await newDatabase());
    const { rows } = await client.query<{ table: string; column: string }>(
      `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns WHERE table_schema = 'public'`,
    );
    expect(rows.length).toBeGreaterThan(50);
    const unnoticed: string[] = [];
    for (const { table, column } of rows) {
      await client.query(`BEGIN; ALTER TABLE ${table} RENAME COLUMN ${column} TO away`);
      const trouble = await schemaTrouble({
        query: async (text, values = []) => client.query(text, [...values]) as never,
      });
      if (trouble?.includes(`${table}.${column}`) !== true) unnoticed.push(`${table}.${column}`);
      await client.query('ROLLBACK');
    }
    expect(unnoticed).toEqual([]);
  });

  test('a schema that is missing or read-only stops the start at once and by name', async () => {
    const url = new URL(await newDatabase({ isEmpty: true }));
    url.searchParams.set('options', '-c search_path=nowhere');
    await expect(open(url.href).start()).rejects.toThrow('no schema has been selected to create in');
    await (await connect(url.href)).query(`CREATE ROLE nothing LOGIN PASSWORD 'nothing'`);
    url.searchParams.delete('options');
    url.username = url.password = 'nothing';
    await expect(open(url.href).start()).rejects.toThrow('permission denied for schema public');
  });

  test('a gateway starts before its database and migrates when it appears', async () => {
    const url = new URL(await newDatabase());
    const name = url.pathname.slice(1);
    url.pathname = '/later';
    const postgres = open(url.href);
    const started = postgres.start();
    expect(await postgres.isReachable()).toBe(false);
    url.pathname = `/${name}`;
    await (await connect(url.href)).query('CREATE DATABASE later');
    await started;
    await eventually(async () => expect(await postgres.isReachable()).toBe(true));
  });

  test('a database that stops answering during a migration does not block the shutdown', async () => {
    const direct = await newDatabase({ isEmpty: true });
    const other = await connect(direct);
    await other.query('BEGIN; SELECT pg_advisory_xact_lock(7201554310)'); // another gateway migrates
    const { url, proxy } = await throughProxy(direct);
    const postgres = new Postgres({ url: url.href, ...POSTGRES_DEFAULTS }, SILENT);
    const started = postgres.start();
    await eventually(async () =>
      expect((await other.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)).rowCount).toBe(
        1,
      ),
    );
    proxy.freeze();
    await Promise.all([postgres.close(), started]);
    expect(await postgres.isReachable()).toBe(false);
  });

  test('a role that may read and write rows but create nothing is enough', async () => {
    const url = new URL(await newDatabase());
    await open(url.href).start();
    const owner = await connect(url.href);
    await owner.query(
      `CREATE ROLE rows_only LOGIN PASSWORD 'rows_only'; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO rows_only`,
    );
    url.username = url.password = 'rows_only';
    const postgres = open(url.href);
    await postgres.start();
    expect(
      await postgres.attempt(async (on) => (await on.query('SELECT count(*)::int AS accounts FROM accounts')).rows),
    ).toEqual(ok([{ accounts: 0 }]));
  });

  test('a database without free connections is reported with the setting that helps', async () => {
    const url = new URL(await newDatabase({ isEmpty: true }));
    const admin = await connect(url.href);
    await admin.query(`CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 2; GRANT ALL ON SCHEMA public TO few`);
    Object.assign(url, { username: 'few', password: 'few' });
    const warnings: unknown[] = [];
    const postgres = new Postgres(
      { url: url.href, ...POSTGRES_DEFAULTS, maxConnections: 7 },
      { info: () => undefined, warn: (message, fields) => warnings.push([message, fields]) },
    );
    onTestFinished(() => postgres.close());
    await postgres.start();
    const areOpen = (count: number) =>
      eventually(async () =>
        expect(
          (await admin.query(`SELECT count(*)::int AS open FROM pg_stat_activity WHERE usename = 'few'`)).rows[0].open,
        ).toBe(count),
      );
    await areOpen(0); // the connection of the migrations closes a moment later
    await admin.query('SELECT pg_advisory_lock(1)');
    const wait = () => postgres.attempt((on) => on.query('SELECT pg_advisory_lock_shared(1)'));
    const welcome = [wait(), wait()];
    await areOpen(2); // of three that come at once PostgreSQL may refuse more than one
    expect((await wait()).ok).toBe(false);
    expect(warnings).toHaveLength(1);
    await admin.query('SELECT pg_advisory_unlock(1)');
    expect((await Promise.all(welcome)).map((result) => result.ok)).toEqual([true, true]);
    expect(warnings).toEqual([
      [
        'the database does not respond',
        {
          cause:
            'too many connections for role "few": it accepts no more connections; raise its max_connections, or lower SVC_DATABASE_POOL (here 7) on the gateways that share it',
        },
      ],
    ]);
    expect((await wait()).ok).toBe(true);
  });
});
