/** Revocations and last uses of API keys, until the store has taken them. */
import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import { createApiKey, listApiKeys, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import type { ApiKeys } from '../../src/credentials/api-keys.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { ADMIN, faultOf, must, START_MS, startApiKeys as start, temporaryStore } from '../support/harness.ts';

describe('unsaved key changes', () => {
  test('a key is revoked here even when the store is away', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    const { keys } = await start({
      ...store,
      revoke: async () => fail({ kind: 'store_unreachable', retryAfterSecs: 1 }),
    });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    expect(faultOf(await revokeApiKey(keys, ADMIN, record.id))).toEqual({
      kind: 'store_unreachable',
      retryAfterSecs: 1,
    });
    expect(keys.authenticate(record.digest)).toBeUndefined();
    must(await keys.refresh());
    expect(keys.authenticate(record.digest)).toBeUndefined();
  });

  test.each([
    ['revoking it once more', (keys: ApiKeys, id: string) => revokeApiKey(keys, ADMIN, id)],
    ['the next look at the store', (keys: ApiKeys) => keys.refresh()],
    ['the next flush, and so the end of the gateway', (keys: ApiKeys) => keys.flush()],
  ] as const)('a revocation that the store could not take is kept: %s writes it', async (_, next) => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    let isAway = true;
    const { keys, reopen } = await start({
      ...store,
      revoke: async (...args) =>
        isAway ? fail({ kind: 'store_unreachable', retryAfterSecs: 1 }) : store.revoke(...args),
    });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    expect(faultOf(await revokeApiKey(keys, ADMIN, record.id))).toEqual({
      kind: 'store_unreachable',
      retryAfterSecs: 1,
    });
    expect(faultOf(await revokeApiKey(keys, ADMIN, record.id))).toEqual({
      kind: 'store_unreachable',
      retryAfterSecs: 1,
    });
    isAway = false;
    must<unknown>(await next(keys, record.id));
    expect((await reopen()).authenticate(record.digest)).toBeUndefined();
  });

  test('writes all revocations that the store could not take in one flush', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    let isAway = true;
    const { keys, reopen } = await start({
      ...store,
      revoke: async (...args) =>
        isAway ? fail({ kind: 'store_unreachable', retryAfterSecs: 1 }) : store.revoke(...args),
    });
    const made = [];
    for (const name of ['a', 'b', 'c'])
      made.push(must(await createApiKey(keys, ADMIN, { name, scopes: ['read'] })).record);
    for (const { id } of made) await revokeApiKey(keys, ADMIN, id);
    isAway = false;
    must(await keys.flush());
    const again = await reopen();
    expect(made.map(({ digest }) => again.authenticate(digest))).toEqual([undefined, undefined, undefined]);
  });

  test('each flush reports a revocation the store still refuses, and writes the rest', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    const { keys } = await start({
      ...store,
      revoke: async () => fail({ kind: 'store_unreachable', retryAfterSecs: 1 }),
    });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    await revokeApiKey(keys, ADMIN, record.id);
    expect(faultOf(await keys.flush())).toEqual({ kind: 'store_unreachable', retryAfterSecs: 1 });
    const { record: other } = must(await createApiKey(keys, ADMIN, { name: 'o', scopes: ['read'] }));
    keys.authenticate(other.digest);
    expect(faultOf(await keys.flush())).toEqual({ kind: 'store_unreachable', retryAfterSecs: 1 });
    expect(must(await store.all()).find(({ id }) => id === other.id)?.lastUsedAtMs).toBe(START_MS);
  });

  test('a store refusing to write still delivers revocations of other gateways', async () => {
    const store = createEmbeddedApiKeyStore(temporaryStore());
    const { keys: other } = await start(store);
    const { keys } = await start({
      ...store,
      revoke: () => Promise.reject(new Error('permission denied for table api_keys')),
    });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    const { record: own } = must(await createApiKey(keys, ADMIN, { name: 'o', scopes: ['read'] }));
    await expect(revokeApiKey(keys, ADMIN, own.id)).rejects.toThrow('permission denied');
    must(await other.refresh());
    must(await revokeApiKey(other, ADMIN, record.id));
    await expect(keys.refresh()).rejects.toThrow('permission denied');
    expect(keys.authenticate(record.digest)).toBeUndefined();
  });

  test('the last use is kept to the minute and written at the next flush', async () => {
    const { keys, clock, store, reopen } = await start();
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    const notedMs = async () => must(await listApiKeys(keys, ADMIN, { perPage: 1 })).items[0]?.lastUsedAtMs;
    expect(await notedMs()).toBeNull();
    keys.authenticate(record.digest);
    clock.advance(59_999);
    keys.authenticate(record.digest);
    expect(await notedMs()).toBe(START_MS);
    expect(must(await store.all())[0]?.lastUsedAtMs).toBeNull();
    clock.advance(1);
    keys.authenticateId(record.id);
    must(await keys.flush());
    expect(must(await store.all())[0]?.lastUsedAtMs).toBe(START_MS + 60_000);
    expect(must(await listApiKeys(await reopen(), ADMIN, { perPage: 1 })).items[0]?.lastUsedAtMs).toBe(
      START_MS + 60_000,
    );
  });

  test('a key used again during the write gets the later use with the next flush', async () => {
    const { store } = await start();
    const written: (number | undefined)[] = [];
    let meanwhile = () => {};
    const { keys, clock } = await start({
      ...store,
      touch: async (uses) => {
        written.push(...uses.map(({ lastUsedAtMs }) => lastUsedAtMs));
        meanwhile();
        return store.touch(uses);
      },
    });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    keys.authenticate(record.digest);
    meanwhile = () => {
      meanwhile = () => {};
      clock.advance(60_000);
      keys.authenticate(record.digest);
    };
    for (let flush = 0; flush < 3; flush += 1) must(await keys.flush());
    expect(written).toEqual([START_MS, START_MS + 60_000]);
  });

  test('last uses the store could not take are written by a later flush', async () => {
    const { store } = await start();
    let touch: typeof store.touch = async () => fail({ kind: 'store_unreachable', retryAfterSecs: 1 });
    const { keys } = await start({ ...store, touch: (uses) => touch(uses) });
    const { record } = must(await createApiKey(keys, ADMIN, { name: 'n', scopes: ['read'] }));
    keys.authenticate(record.digest);
    expect(faultOf(await keys.flush())).toEqual({ kind: 'store_unreachable', retryAfterSecs: 1 });
    touch = () => Promise.reject(new Error('the disk is full'));
    await expect(keys.flush()).rejects.toThrow('the disk is full');
    touch = store.touch;
    must(await keys.flush());
    expect(must(await store.all())[0]?.lastUsedAtMs).toBe(START_MS);
  });
});
