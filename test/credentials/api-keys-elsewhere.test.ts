/** API keys that another gateway on the same store made a moment ago. */
import { describe, expect, test } from 'vitest';
import { fail } from '../../src/core/base/result.ts';
import { createApiKey, listApiKeys, revokeApiKey } from '../../src/credentials/api-key-admin.ts';
import type { ApiKeyStore } from '../../src/credentials/api-key-store.ts';
import { ApiKeys } from '../../src/credentials/api-keys.ts';
import { createEmbeddedApiKeyStore } from '../../src/stores/embedded/api-keys.ts';
import { ADMIN, must, START_MS, temporaryStore, testAudit, testClock } from '../support/harness.ts';

const AWAY = fail({ kind: 'store_unreachable', retryAfterSecs: 2 } as const);

/** A gateway on a store that another one writes to as well, where a test says when the store may be asked again. */
async function startBeside() {
  const store = createEmbeddedApiKeyStore(temporaryStore());
  const seen = { looks: 0, isAway: false, endPause: () => {} };
  const changedWithin: ApiKeyStore['changedWithin'] = async (ms) => {
    seen.looks += 1;
    return seen.isAway ? AWAY : store.changedWithin(ms);
  };
  const lastUses: ApiKeyStore['lastUses'] = async (ids) => {
    if (seen.isAway) throw new Error('asked in vain, for as long as a statement has');
    return store.lastUses(ids);
  };
  const open = async (from: ApiKeyStore, pauseBetweenLooks?: () => Promise<unknown>) =>
    must(
      await ApiKeys.open({
        store: from,
        audit: testAudit(),
        clock: testClock(),
        maxOrgKeys: 10_000,
        pauseBetweenLooks,
      }),
    );
  const other = await open(store);
  const keys = await open(
    { ...store, changedWithin, lastUses },
    () =>
      new Promise<void>((resolve) => {
        seen.endPause = resolve;
      }),
  );
  const make = async () => must(await createApiKey(other, ADMIN, { name: 'n', scopes: ['read'] })).record;
  return { keys, other, make, seen };
}

describe('api keys elsewhere', () => {
  test('looks up unknown keys in the store on any use, and known ones never', async () => {
    const { keys, other, make, seen } = await startBeside();
    const first = await make();
    must(await keys.lookFor(first.id));
    expect(keys.authenticate(first.digest)?.id).toBe(first.id);
    must(await revokeApiKey(other, ADMIN, first.id));
    seen.endPause();
    expect(must(await listApiKeys(keys, ADMIN, { perPage: 1 })).items[0]?.revokedAtMs).toBe(START_MS);
    must(await keys.lookFor(first.id));
    expect(seen.looks).toBe(2);
    seen.endPause();
    expect(must(await keys.isRevoked(`key:${(await make()).id}`))).toBe(false);
    expect(seen.looks).toBe(3);
  });

  test('asks the store once for all unknown keys, and again only after the pause', async () => {
    const { keys, make, seen } = await startBeside();
    await Promise.all(Array.from({ length: 1000 }, (_, n) => keys.lookFor(`wrong${n}`)));
    expect(seen.looks).toBe(1);
    const late = Array.from({ length: 1000 }, (_, n) => keys.lookFor(`late${n}`));
    const { id, digest } = await make();
    late.push(keys.lookFor(id));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen.looks).toBe(1);
    seen.endPause();
    await Promise.all(late);
    expect(seen.looks).toBe(2);
    expect(keys.authenticate(digest)?.id).toBe(id);
  });

  test('does not refuse it as wrong while the store is away; the next lookup finds it', async () => {
    const { keys, make, seen } = await startBeside();
    const { id } = await make();
    seen.isAway = true;
    expect(await keys.lookFor(id)).toEqual(AWAY);
    seen.endPause();
    expect(await keys.isRevoked('key:unknown')).toEqual(AWAY);
    seen.isAway = false;
    seen.endPause();
    expect(must(await keys.isRevoked(`key:${id}`))).toBe(false);
  });

  test('a list comes as soon as the store has failed once, and waits no second time', async () => {
    const { keys, make, seen } = await startBeside();
    const { id } = await make();
    must(await keys.lookFor(id));
    seen.endPause();
    seen.isAway = true;
    expect(must(await listApiKeys(keys, ADMIN, { perPage: 1 })).items[0]?.id).toBe(id);
  });
});
