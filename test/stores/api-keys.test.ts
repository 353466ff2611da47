import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import { ok } from '../../src/core/base/result.ts';
import type { ApiKey } from '../../src/core/identity/api-key.ts';
import { valueOf } from '../support/accounts.ts';
import { apiKeyStores } from '../support/api-key-stores.ts';
import { withTables } from '../support/postgres.ts';

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

describe.each(apiKeyStores(withTables()))('in %s', (_name, open) => {
  test('a key reads back as stored, and its id and digest are unique', async () => {
    const store = await open();
    expect(await store.insert(KEY)).toEqual(ok('inserted'));
    expect(await store.insert({ ...OTHER, id: 'k1' })).toEqual(ok('exists'));
    expect(await store.insert({ ...OTHER, digest: 'd1' as SecretDigest })).toEqual(ok('exists'));
    expect(await store.all()).toEqual(ok([KEY]));
  });

  test('ended keys before a time are not listed, except generated ones, but found', async () => {
    const store = await open();
    const keys: readonly ApiKey[] = [
      { ...KEY, id: 'expired', digest: '1' as SecretDigest, expiresAtMs: 2_999 },
      { ...KEY, id: 'revoked', digest: '2' as SecretDigest, expiresAtMs: null, revokedAtMs: 2_999 },
      { ...KEY, id: 'just expired', digest: '3' as SecretDigest, expiresAtMs: 3_000 },
      { ...KEY, id: 'just revoked', digest: '4' as SecretDigest, expiresAtMs: 9_000, revokedAtMs: 3_000 },
      { ...KEY, id: 'for ever', digest: '5' as SecretDigest, expiresAtMs: null },
      { ...KEY, id: 'first', digest: '6' as SecretDigest, createdBy: 'gateway', revokedAtMs: 1 },
      { ...KEY, id: 'environment', digest: '7' as SecretDigest, createdBy: 'gateway:environment', revokedAtMs: 1 },
    ];
    for (const key of keys) await store.insert(key);
    expect(
      valueOf(await store.notLongOver(3_000))
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['environment', 'first', 'for ever', 'just expired', 'just revoked']);
    expect(await store.find({ id: 'revoked' })).toEqual(ok(keys[1]));
    expect(await store.find({ digest: '1' as SecretDigest })).toEqual(ok(keys[0]));
    expect([await store.find({ id: 'nope' }), await store.find({ digest: 'nope' as SecretDigest })]).toEqual([
      ok(undefined),
      ok(undefined),
    ]);
  });

  test('stores the first key of one of ten gateways that start together', async () => {
    const store = await open();
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, i) => store.insertFirst({ ...KEY, id: `k${i}`, digest: `d${i}` as SecretDigest })),
    );
    expect(results.filter((result) => result.ok && result.value === 'inserted')).toHaveLength(1);
    expect(valueOf(await store.all())).toHaveLength(1);
  });

  test('the first revocation counts, and the latest use', async () => {
    const store = await open();
    await store.insert(KEY);
    await store.revoke('k1', 3000);
    await store.revoke('k1', 4000);
    expect(await store.revoke('unknown', 4000)).toEqual(ok(undefined));
    await store.touch([
      { id: 'k1', lastUsedAtMs: 2500 },
      { id: 'unknown', lastUsedAtMs: 1 },
    ]);
    await store.touch([{ id: 'k1', lastUsedAtMs: 1500 }]);
    expect(await store.all()).toEqual(ok([{ ...KEY, revokedAtMs: 3000, lastUsedAtMs: 2500 }]));
  });
});
