import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../src/stores/postgres/postgres.ts';
import { SILENT } from '../../support/database-server.ts';
import { eventually } from '../../support/eventually.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();

describe('postgres tls files', () => {
  test('reports an outage while the TLS certificate file is being replaced', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-ca-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const ca = join(folder, 'ca.pem');
    writeFileSync(ca, 'read whenever a connection is made, and not used here');
    const { url, proxy } = await throughProxy(await newDatabase());
    url.search = `?sslmode=disable&sslrootcert=${ca}`;
    const postgres = new Postgres({ url: url.href, ...POSTGRES_DEFAULTS, maxConnections: 1 }, SILENT);
    onTestFinished(() => postgres.close());
    await postgres.start();
    const asked = [1, 2, 3].map(() => postgres.attempt((on) => on.query('SELECT pg_sleep(10)')));
    await eventually(() => expect(proxy.accepted()).toBeGreaterThan(1));
    renameSync(ca, `${ca}~`);
    proxy.cut();
    const away = fail({ kind: 'store_unreachable', retryAfterSecs: 2 });
    expect(await Promise.all(asked)).toEqual([away, away, away]);
    renameSync(`${ca}~`, ca);
    expect(await postgres.attempt(async (on) => (await on.query('SELECT 1 AS one')).rows)).toEqual(ok([{ one: 1 }]));
  });
});
