import { ok } from '../../core/base/result.ts';
import { type ApiKey, isLongOver } from '../../core/identity/api-key.ts';
import type { ApiKeyStore } from '../../credentials/api-key-store.ts';
import type { EmbeddedStore, TableInTransaction } from './lmdb.ts';

/** So many take a millisecond or two of the main thread. */
const LOOKED_THROUGH_AT_ONCE = 1000;

/** Rows by id, and from digest to id, which keeps digests unique. */
const tablesOf = (store: EmbeddedStore) => ({
  rows: store.table<string, ApiKey>('api-keys'),
  owners: store.table<string, string>('api-key-digests'),
});

/** API keys in the embedded store. */
export function createLmdbApiKeyStore(store: EmbeddedStore): ApiKeyStore {
  const { rows, owners } = tablesOf(store);

  const insertInto = (table: TableInTransaction<string, ApiKey>, key: ApiKey): 'inserted' | 'exists' => {
    if (table.get(key.id) !== undefined || owners.get(key.digest) !== undefined) return 'exists';
    table.put(key.id, key);
    void owners.put(key.digest, key.id); // joins the transaction
    return 'inserted';
  };

  const all = () => Array.from(rows.entries(), ([, row]) => row);

  return {
    all: async () => ok(all()),
    notLongOver: async (beforeMs) => ok(all().filter((key) => !isLongOver(key, beforeMs))),
    deleteLongOver: async ({ nowMs, forMs, kept, after }) => {
      const seen = Array.from(rows.entriesAfter(after, LOOKED_THROUGH_AT_ONCE), ([, row]) => row);
      await deleteLmdbApiKeys(
        store,
        seen.filter((key) => isLongOver(key, nowMs - forMs) && key.digest !== kept),
      );
      return ok(seen.length < LOOKED_THROUGH_AT_ONCE ? undefined : seen.at(-1)?.id);
    },
    find: async (by) => ok(rows.get('id' in by ? by.id : (owners.get(by.digest) ?? ''))),
    changedWithin: async () => ok(all()), // one gateway has this store to itself, and asks at its start only
    insert: async (key) => ok(await rows.transaction((table) => insertInto(table, key))),
    insertFirst: async (key) =>
      ok(await rows.transaction((table) => (table.isEmpty() ? insertInto(table, key) : 'exists'))),
    revoke: async (id, revokedAtMs) => {
      await rows.transaction((table) => {
        const row = table.get(id);
        if (row !== undefined && row.revokedAtMs === null) table.put(id, { ...row, revokedAtMs });
      });
      return ok(undefined);
    },
    touch: async (uses) => {
      await rows.transaction((table) => {
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
export async function deleteLmdbApiKeys(store: EmbeddedStore, keys: readonly ApiKey[]): Promise<void> {
  if (keys.length === 0) return;
  const { rows, owners } = tablesOf(store);
  await rows.transaction((table) => {
    for (const { id, digest } of keys) {
      table.remove(id);
      void owners.remove(digest); // joins the transaction
    }
  });
}
