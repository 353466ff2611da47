import { describe, expect, onTestFinished, test } from 'vitest';
import type { SecretDigest } from '../../../src/core/base/ids.ts';
import { fail, ok } from '../../../src/core/base/result.ts';
import type { ApiKey } from '../../../src/core/identity/api-key.ts';
import { createApiKey, listApiKeys, revokeApiKey } from '../../../src/credentials/api-key-admin.ts';
import type { ApiKeyStore } from '../../../src/credentials/api-key-store.ts';
import { ApiKeys } from '../../../src/credentials/api-keys.ts';
import { digestOf } from '../../../src/credentials/secret-token.ts';
import { createEmbeddedApiKeyStore } from '../../../src/stores/embedded/api-keys.ts';
import { createPostgresApiKeyStore, moveApiKeys } from '../../../src/stores/postgres/api-keys.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../../../src/stores/postgres/postgres.ts';
import { valueOf } from '../../support/accounts.ts';
import { SILENT } from '../../support/database-server.ts';
import { ADMIN, START_MS, temporaryStore, testAudit, testClock } from '../../support/harness.ts';
import { withPostgres } from '../../support/postgres.ts';
import { throughProxy } from '../../support/proxy.ts';

const newDatabase = withPostgres();

const KEY: ApiKey = {
  id: 'k1',
  name: 'ci',
  digest: 'd1' as SecretDigest,
  hint: 'svc_k1…',
  scopes: ['read', 'admin'],
  orgId: 'acme',
  createdAtMs: 1000,
  createdBy: 'key:k0',
  expiresAtMs: 5000,
  revokedAtMs: null,
  lastUsedAtMs: null,
};
const OTHER: ApiKey = {
  ...KEY,
  id: 'k2',
  digest: 'd2' as SecretDigest,
  orgId: null,
  expiresAtMs: null,
  createdAtMs: 2000,
};

async function open(url?: string): Promise<{ store: ApiKeyStore; postgres: Postgres }> {
  const postgres = new Postgres({ url: url ?? (await newDatabase()), ...POSTGRES_DEFAULTS }, SILENT);
  onTestFinished(() => postgres.close());
  return { store: createPostgresApiKeyStore(postgres), postgres };
}

describe('postgres api keys', () => {
  test('gateways recording thousands of uses at once do not deadlock', async () => {
    const url = await newDatabase();
    const [{ store, postgres }, { store: other }] = [await open(url), await open(url)];
    await store.insert(KEY);
    valueOf(
      await postgres.attempt((on) =>
        on.query(
          `INSERT INTO api_keys (id, digest, name, hint, scopes, created_at, created_by) SELECT 'many' || n, 'many' || n, 'n', 'h', '{read}', now(), 'key:k0' FROM generate_series(1, 2000) n`,
        ),
      ),
    );
    for (let round = 0; round < 5; round += 1) {
      const uses = Array.from({ length: 2000 }, (_, n) => ({ id: `many${n + 1}`, lastUsedAtMs: 10_000 + 2 * round }));
      const later = uses.map(({ id, lastUsedAtMs }) => ({ id, lastUsedAtMs: lastUsedAtMs + 1 })).reverse();
      expect(await Promise.all([store.touch(uses), other.touch(later)])).toEqual([ok(undefined), ok(undefined)]);
    }
    const last = valueOf(await store.lastUses(['k1', 'many1', 'many2000', 'unknown']));
    expect(last.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      { id: 'many1', lastUsedAtMs: 10_009 },
      { id: 'many2000', lastUsedAtMs: 10_009 },
    ]);
  });

  test("another gateway's key is revocable here at once, and its uses are seen", async () => {
    const url = await newDatabase();
    const gateway = async () =>
      valueOf(
        await ApiKeys.open({
          store: (await open(url)).store,
          audit: testAudit(),
          clock: testClock(),
          maxOrgKeys: 1_000,
        }),
      );
    const [here, there] = [await gateway(), await gateway()];
    const { key, record } = valueOf(await createApiKey(there, ADMIN, { name: 'ci', scopes: ['read'] }));
    valueOf(await here.refresh());
    expect(there.authenticate(digestOf(key))).toMatchObject({ id: record.id });
    valueOf(await there.flush());
    expect(valueOf(await listApiKeys(here, ADMIN, { perPage: 10 })).items).toMatchObject([
      { id: record.id, lastUsedAtMs: START_MS },
    ]);
    const second = valueOf(await createApiKey(there, ADMIN, { name: 'leaked', scopes: ['read'] })).record;
    expect(await revokeApiKey(here, ADMIN, second.id)).toEqual(
      ok({ revoked: [], kept: [], ended: [`key:${second.id}`] }),
    );
    expect(await revokeApiKey(here, ADMIN, 'unknown')).toEqual(fail({ kind: 'not_found', what: 'API key' }));
  });

  test('learns keys created or revoked since the last query, whatever the clocks', async () => {
    const { store, postgres } = await open();
    await store.insert(KEY); // by a clock of 1970
    await store.insert({ ...OTHER, createdAtMs: Date.UTC(2099, 0, 1) });
    const idsWithin = async (ms: number) =>
      valueOf(await store.changedWithin(ms))
        .map(({ id }) => id)
        .sort();
    expect(await idsWithin(60_000)).toEqual(['k1', 'k2']);
    valueOf(
      await postgres.attempt((on) => on.query(`UPDATE api_keys SET changed_at = changed_at - interval '1 hour'`)),
    );
    expect(await idsWithin(60_000)).toEqual([]);
    await store.revoke('k1', 3000);
    expect(await idsWithin(60_000)).toEqual(['k1']);
    await store.touch([{ id: 'k2', lastUsedAtMs: 2500 }]);
    expect(await idsWithin(60_000)).toEqual(['k1']);
    expect(await idsWithin(3_700_000)).toEqual(['k1', 'k2']);
  });

  test('the keys of the embedded store move once, and none stays behind', async () => {
    const embedded = temporaryStore();
    const from = createEmbeddedApiKeyStore(embedded);
    const { store: to } = await open();
    await from.insert(KEY);
    await from.insert({ ...OTHER, revokedAtMs: 2500 });
    await to.insert(OTHER); // an earlier move was stopped after it
    expect(await moveApiKeys(embedded, from, to)).toEqual(ok(2));
    expect(valueOf(await to.all()).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      KEY,
      { ...OTHER, revokedAtMs: 2500 },
    ]);
    expect(await from.all()).toEqual(ok([]));
    expect(await moveApiKeys(embedded, from, to)).toEqual(ok(0));
    expect(await from.insert(KEY)).toEqual(ok('inserted'));
  });

  test('the move does not revive a key that the database has under another id', async () => {
    const embedded = temporaryStore();
    const from = createEmbeddedApiKeyStore(embedded);
    const { store: to } = await open();
    await to.insert({ ...KEY, id: 'made there' });
    await from.insert({ ...KEY, revokedAtMs: 2500 });
    expect(await moveApiKeys(embedded, from, to)).toEqual(ok(1));
    expect(await to.all()).toEqual(ok([{ ...KEY, id: 'made there', revokedAtMs: 2500 }]));
    expect(await from.all()).toEqual(ok([]));
  });

  test('many keys move to a distant database in parallel', async () => {
    const embedded = temporaryStore();
    const from = createEmbeddedApiKeyStore(embedded);
    const { url, proxy } = await throughProxy(await newDatabase());
    const { store: to, postgres } = await open(url.href);
    for (let nth = 0; nth < 300; nth += 1)
      await from.insert({ ...KEY, id: `k${nth}`, digest: `d${nth}` as SecretDigest });
    await postgres.start();
    proxy.delay(20);
    const startedMs = performance.now();
    expect(await moveApiKeys(embedded, from, to)).toEqual(ok(300));
    expect(performance.now() - startedMs).toBeLessThan(11_000); // one after the other: 12 s
    expect(valueOf(await to.all())).toHaveLength(300);
  });

  test('a move that the database interrupts leaves the keys in place', async () => {
    const embedded = temporaryStore();
    const from = createEmbeddedApiKeyStore(embedded);
    const { store: to, postgres } = await open();
    await from.insert(KEY);
    await postgres.close();
    expect(await moveApiKeys(embedded, from, to)).toEqual(fail({ kind: 'store_unreachable', retryAfterSecs: 2 }));
    expect(await from.all()).toEqual(ok([KEY]));
  });
});
