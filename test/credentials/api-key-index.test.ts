import { describe, expect, test } from 'vitest';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import type { ApiKey } from '../../src/core/identity/api-key.ts';
import { createApiKey } from '../../src/credentials/api-key-admin.ts';
import { ApiKeyIndex } from '../../src/credentials/api-key-index.ts';
import { ADMIN, must, startApiKeys } from '../support/harness.ts';

const keyOf = (id: string, orgId: string | null, revokedAtMs: number | null = null): ApiKey => ({
  id,
  name: 'ci',
  digest: `digest of ${id}` as SecretDigest,
  hint: 'svc_k…',
  scopes: ['read'],
  orgId,
  createdAtMs: 1,
  createdBy: 'key:k0',
  expiresAtMs: null,
  revokedAtMs,
  lastUsedAtMs: null,
});

describe('api key index', () => {
  test('a dropped key is gone everywhere, and its org can go on creating keys', () => {
    const index = new ApiKeyIndex();
    for (const key of [keyOf('a', 'acme'), keyOf('b', 'acme', 5), keyOf('c', null, 5), keyOf('d', 'globex', 5)])
      index.set(key);
    index.forget(({ revokedAtMs }) => revokedAtMs !== null);
    expect(index.size).toBe(1);
    expect(index.all().map(({ id }) => id)).toEqual(['a']);
    expect(['a', 'b', 'c', 'd'].map((id) => index.byDigest(`digest of ${id}` as SecretDigest)?.id)).toEqual([
      'a',
      undefined,
      undefined,
      undefined,
    ]);
    expect({ acme: index.countOf('acme', 10), globex: index.countOf('globex', 10) }).toEqual({ acme: 1, globex: 0 });
    expect(index.page(10, undefined, null)).toEqual({ items: [keyOf('a', 'acme')], next: undefined });
    index.set(keyOf('d', 'globex'));
    expect(index.countOf('globex', 10)).toBe(1);
    expect(index.page(10, undefined, null)?.items.map(({ id }) => id)).toEqual(['d', 'a']);
  });

  test('an org with few keys among many is listed page by page', () => {
    const index = new ApiKeyIndex();
    for (let nth = 0; nth < 2_000; nth += 1)
      index.set({ ...keyOf(`k${nth}`, nth < 2 ? 'acme' : 'globex'), createdAtMs: nth });
    expect(index.page(10, undefined, 'acme')?.items.length).toBe(2);
    expect(index.page(1, undefined, 'acme')).toMatchObject({ items: [{ id: 'k1' }], next: 'k1' });
    expect(index.page(1, 'k1', 'acme')).toMatchObject({ items: [{ id: 'k0' }], next: undefined });
    expect({
      pageAcme: index.page(1, 'k2', 'acme'),
      page: index.page(1, 'no key', null),
      pageInitech: index.page(1, undefined, 'initech'),
    }).toEqual({ pageAcme: undefined, page: undefined, pageInitech: { items: [], next: undefined } });
  });

  test('counts the usable keys of an org with many ended ones at any time', () => {
    const index = new ApiKeyIndex();
    for (let nth = 0; nth < 100_000; nth += 1) index.set(keyOf(`k${nth}`, 'acme'));
    for (let nth = 0; nth < 90_000; nth += 1)
      index.set({ ...keyOf(`k${nth}`, 'acme'), ...(nth % 2 === 0 ? { revokedAtMs: nth } : { expiresAtMs: nth }) });
    index.set(keyOf('k1', 'acme', 0)); // it would have expired at 1
    expect(index.countOf('acme', 49_999)).toBe(50_000);
    expect([-1, 0, 1, 2, 89_998, 89_999, Infinity].map((ms) => index.countOf('acme', ms))).toEqual([
      100_000, 99_998, 99_998, 99_997, 10_001, 10_000, 10_000,
    ]);
    index.forget(({ id }) => Number(id.slice(1)) < 89_998);
    expect([0, 89_998, 89_999].map((ms) => index.countOf('acme', ms))).toEqual([10_002, 10_001, 10_000]);
  });

  test('the last sync is the latest creation or use of any key', async () => {
    const { keys, clock, reopen } = await startApiKeys();
    expect(keys.lastSeenAtMs).toBeUndefined();
    const made = async () =>
      must(await createApiKey(keys, ADMIN, { name: 'ci', scopes: ['read'], orgId: null })).record;
    const startMs = clock.nowMs();
    const first = await made();
    clock.advance(1_000);
    await made();
    expect(keys.lastSeenAtMs).toBe(startMs + 1_000);
    clock.advance(1_000);
    keys.authenticate(first.digest);
    expect(keys.lastSeenAtMs).toBe(startMs + 2_000);
    must(await keys.flush());
    expect((await reopen()).lastSeenAtMs).toBe(startMs + 2_000);
  });
});
