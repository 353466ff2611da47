import { expect, test } from 'vitest';
import type { ApiKey } from '../../src/core/api-key.ts';
import type { SecretDigest } from '../../src/core/ids.ts';
import { createApiKey } from '../../src/gateway/api-key-admin.ts';
import { ApiKeyIndex } from '../../src/gateway/api-key-index.ts';
import { ADMIN, must, startApiKeys } from './harness.ts';

const keyOf = (id: string, orgId: string | null, revokedAtMs: number | null = null): ApiKey =>
  ({ id, name: 'ci', digest: `digest of ${id}` as SecretDigest, hint: 'svc_k…', scopes: ['read'], orgId, createdAtMs: 1, createdBy: 'key:k0', expiresAtMs: null, revokedAtMs, lastUsedAtMs: null });

test('what was forgotten is nowhere any more, and its org can go on having keys', () => {
  const index = new ApiKeyIndex();
  for (const key of [keyOf('a', 'acme'), keyOf('b', 'acme', 5), keyOf('c', null, 5), keyOf('d', 'globex', 5)]) index.set(key);
  index.forget(({ revokedAtMs }) => revokedAtMs !== null);
  expect(index.size).toBe(1);
  expect(index.all().map(({ id }) => id)).toEqual(['a']);
  expect(['a', 'b', 'c', 'd'].map((id) => index.byDigest(`digest of ${id}` as SecretDigest)?.id)).toEqual(['a', undefined, undefined, undefined]);
  expect([index.usableOf('acme', 10), index.usableOf('globex', 10)]).toEqual([1, 0]);
  expect(index.page(10, undefined, () => true)).toEqual({ items: [keyOf('a', 'acme')], next: undefined });
  index.set(keyOf('d', 'globex'));
  expect(index.usableOf('globex', 10)).toBe(1);
  expect(index.page(10, undefined, () => true)?.items.map(({ id }) => id)).toEqual(['d', 'a']);
});

test('when the keys were last seen is when the latest of them was made or used', async () => {
  const { keys, clock, reopen } = await startApiKeys();
  expect(keys.lastSeenAtMs).toBeUndefined();
  const made = async () => must(await createApiKey(keys, ADMIN, { name: 'ci', scopes: ['read'], orgId: null })).record;
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
