import { ok } from '../../core/base/result.ts';
import { type ApiKey, isLongOver } from '../../core/identity/api-key.ts';
import type { ApiKeyStore } from '../../credentials/api-key-store.ts';
import type { EmbeddedStore, Inside } from './store.ts';

/** Looking through so many takes a millisecond or two of the main thread. */
const LOOKED_THROUGH_AT_ONCE = 1000;

/** Rows by id, and from digest to id, which keeps digests unique. */
const tablesOf = (store: EmbeddedStore) => ({
  rows: store.table<ApiKey>('api-keys'),
  owners: store.table<string>('api-key-digests'),
});

/** API keys in the embedded store. */
export function createEmbeddedApiKeyStore(store: EmbeddedStore): ApiKeyStore {
  const { rows, owners } = tablesOf(store);

  const insertInto = (inside: Inside, key: ApiKey): 'inserted' | 'exists' => {
    if (inside(rows).get(key.id) !== undefined || inside(owners).get(key.digest) !== undefined) return 'exists';
    inside(rows).put(key.id, key);
    inside(owners).put(key.digest, key.id);
    return 'inserted';
  };

  const all = () => Array.from(rows.entries(), ([, row]) => row);

  return {
    all: async () => ok(all()),
    notLongOver: async (beforeMs) => ok(all().filter((key) => !isLongOver(key, beforeMs))),
    deleteLongOver: async ({ nowMs, forMs, kept, after }) => {
      const seen = Array.from(rows.entriesAfter(after, LOOKED_THROUGH_AT_ONCE), ([, row]) => row);
      await deleteEmbeddedApiKeys(
        store,
        seen.filter((key) => isLongOver(key, nowMs - forMs) && key.digest !== kept),
      );
      return ok(seen.length < LOOKED_THROUGH_AT_ONCE ? undefined : seen.at(-1)?.id);
    },
    find: async (by) => ok(rows.get('id' in by ? by.id : (owners.get(by.digest) ?? ''))),
    changedWithin: async () => ok(all()), // one gateway has this store to itself, and asks at its start only
    insert: async (key) => ok(await store.transaction((inside) => insertInto(inside, key))),
    insertFirst: async (key) =>
      ok(await store.transaction((inside) => (inside(rows).isEmpty() ? insertInto(inside, key) : 'exists'))),
    revoke: async (id, revokedAtMs) => {
      await store.transaction((inside) => {
        const table = inside(rows);
        const row = table.get(id);
        if (row !== undefined && row.revokedAtMs === null) table.put(id, { ...row, revokedAtMs });
      });
      return ok(undefined);
    },
    touch: async (uses) => {
      await store.transaction((inside) => {
        const table = inside(rows);
        for (const { id, lastUsedAtMs } of uses) {
          const row = table.get(id);
          if (row !== undefined && (row.lastUsedAtMs ?? 0) < lastUsedAtMs) table.put(id, { ...row, lastUsedAtMs });
        }
      });
      return ok(undefined);
    },
    lastUses: async () => ok([]),
  };
}

/**
 * Takes keys away that are long over, or have moved to another store: a copy that stays behind would not hear of their
 * revocation.
 */
export async function deleteEmbeddedApiKeys(store: EmbeddedStore, keys: readonly ApiKey[]): Promise<void> {
  if (keys.length === 0) return;
  const { rows, owners } = tablesOf(store);
  await store.transaction((inside) => {
    for (const { id, digest } of keys) {
      inside(rows).remove(id);
      inside(owners).remove(digest);
    }
  });
}
