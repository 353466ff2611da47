import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import type { ApiKey } from '../../src/core/identity/api-key.ts';
import { createApiKey, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import { ApiKeyDeletion, bootstrapOf } from '../../src/credentials/api-key-start.ts';
import type { ApiKeyStore } from '../../src/credentials/api-key-store.ts';
import { ApiKeys } from '../../src/credentials/api-keys.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { apiKeyStores, openPostgresApiKeys } from '../support/api-key-stores.ts';
import { ADMIN, must, temporaryStore, testAudit, testClock } from '../support/harness.ts';
import { withTables } from '../support/postgres.ts';

const DAY_MS = 86_400_000;
/** The database has a clock of its own, so this is close to now. */
const NOW_MS = Date.now();
const daysAgo = (days: number): number => NOW_MS - days * DAY_MS;

const newDatabase = withTables();

const KEY: ApiKey = {
  id: 'k',
  name: 'ci',
  digest: 'd' as SecretDigest,
  hint: 'svc_k…',
  scopes: ['read'],
  orgId: 'acme',
  createdAtMs: daysAgo(500),
  createdBy: 'key:k0',
  expiresAtMs: null,
  revokedAtMs: null,
  lastUsedAtMs: null,
};
const keyOf = (id: string, given: Partial<ApiKey>): ApiKey => ({
  ...KEY,
  id,
  digest: `digest of ${id}` as SecretDigest,
  ...given,
});

/** No more at once than may wait for a connection. */
async function insertOld(store: ApiKeyStore, count: number): Promise<void> {
  for (let from = 0; from < count; from += 250) {
    for (const inserted of await Promise.all(
      Array.from({ length: 250 }, (_, n) => store.insert(keyOf(`old-${from + n}`, { revokedAtMs: daysAgo(91) }))),
    ))
      must(inserted);
  }
}

/** Steps until the store has been gone through. */
async function deleteAll(store: ApiKeyStore, nowMs = NOW_MS, kept?: SecretDigest): Promise<void> {
  const clock = testClock(nowMs);
  const deletion = new ApiKeyDeletion({ store, clock, kept });
  for (let step = 0; step < 10; step += 1) must(await deletion.step());
}

const idsIn = async (store: ApiKeyStore): Promise<string[]> =>
  must(await store.all())
    .map(({ id }) => id)
    .toSorted();

describe.each(apiKeyStores(newDatabase))('in %s', (_name, open) => {
  test('deletes keys 90 days after they ended; never usable, generated or operator keys', async () => {
    const store = await open();
    const keys = [
      keyOf('revoked', { revokedAtMs: daysAgo(91) }),
      keyOf('revoked before it expired', { revokedAtMs: daysAgo(91), expiresAtMs: daysAgo(1) }),
      keyOf('expired', { expiresAtMs: daysAgo(91) }),
      keyOf('expired before it was revoked', { expiresAtMs: daysAgo(91), revokedAtMs: daysAgo(1) }),
      keyOf('revoked lately', { revokedAtMs: daysAgo(89) }),
      keyOf('expired lately', { expiresAtMs: daysAgo(89) }),
      keyOf('usable', { lastUsedAtMs: daysAgo(400) }),
      keyOf('usable for a while', { expiresAtMs: daysAgo(-1) }),
      keyOf('first', { createdBy: 'gateway', orgId: null, revokedAtMs: daysAgo(400) }),
      keyOf('environment of before', { createdBy: 'gateway:environment', orgId: null, revokedAtMs: daysAgo(400) }),
      keyOf('set by the operator', { revokedAtMs: daysAgo(400) }),
    ];
    for (const key of keys) must(await store.insert(key));
    await deleteAll(store, NOW_MS, 'digest of set by the operator' as SecretDigest);
    expect(await idsIn(store)).toEqual([
      'environment of before',
      'expired lately',
      'first',
      'revoked lately',
      'set by the operator',
      'usable',
      'usable for a while',
    ]);
    // Nothing of them is left behind that could stand in the way of a new one.
    expect(must(await store.insert(keys[0]!))).toBe('inserted');
  });

  test('deletes thousands in steps, with pauses for the store', async () => {
    const store = await open();
    await insertOld(store, 2_500);
    must(await store.insert(keyOf('usable', {})));
    const clock = testClock(NOW_MS);
    const deletion = new ApiKeyDeletion({ store, clock, kept: undefined });
    const left: number[] = [];
    for (let step = 0; step < 4; step += 1) {
      must(await deletion.step());
      left.push((await idsIn(store)).length);
    }
    expect(left).toEqual([1_501, 501, 1, 1]);
    must(await store.insert(keyOf('later', { revokedAtMs: daysAgo(91) })));
    must(await deletion.step());
    expect(await idsIn(store)).toEqual(['later', 'usable']);
    clock.advance(60 * 60_000);
    must(await deletion.step());
    expect(await idsIn(store)).toEqual(['usable']);
  });
});

describe('api key deletion', () => {
  test('a deleted key that the operator once set does not become valid again', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    const clock = testClock(daysAgo(200));
    const gateway = async () => must(await ApiKeys.open({ store, audit: testAudit(), clock, maxOrgKeys: 10 }));
    const keys = await gateway();
    must(await bootstrapOf(keys, 'an-earlier-value-0123456789abcdefgh')());
    const { key, record } = must(await createApiKey(keys, ADMIN, { name: 'ci', scopes: ['read'], orgId: 'acme' }));
    expect(must(await bootstrapOf(await gateway(), key)())).toMatchObject({
      kind: 'set-from-environment',
      replaced: 1,
    });
    must(await revokeApiKey(await gateway(), ADMIN, record.id));
    clock.advance(200 * DAY_MS);
    await deleteAll(store, clock.nowMs(), record.digest);
    expect(must(await bootstrapOf(await gateway(), key)()).kind).toBe('environment-key-dead');
    expect(must(await bootstrapOf(await gateway(), 'an-earlier-value-0123456789abcdefgh')()).kind).toBe(
      'environment-key-dead',
    );
  });

  test('gateways deleting from one database at once take different keys, without errors', async () => {
    const url = await newDatabase();
    const stores = [openPostgresApiKeys(url), openPostgresApiKeys(url), openPostgresApiKeys(url)] as const;
    await insertOld(stores[0], 3_500);
    must(await stores[0].insert(keyOf('usable', {})));
    await Promise.all(stores.map((store) => deleteAll(store)));
    expect(await idsIn(stores[0])).toEqual(['usable']);
  });

  test("a gateway with its clock a year ahead deletes only by the database's clock", async () => {
    const store = openPostgresApiKeys(await newDatabase());
    for (const key of [
      keyOf('expired lately', { expiresAtMs: daysAgo(1) }),
      keyOf('usable for a while', { expiresAtMs: daysAgo(-30) }),
      keyOf('old', { expiresAtMs: daysAgo(91) }),
    ])
      must(await store.insert(key));
    await deleteAll(store, daysAgo(-365));
    expect(await idsIn(store)).toEqual(['expired lately', 'usable for a while']);
  });
});
