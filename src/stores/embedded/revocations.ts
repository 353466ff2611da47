import type { Revocation, RevocationStore } from '../../credentials/revocations.ts';
import type { EmbeddedStore } from './lmdb.ts';

export function createLmdbRevocationStore(store: EmbeddedStore): RevocationStore {
  const table = store.table<string, Revocation>('revocations');
  return {
    all: () => Array.from(table.entries(), ([, revocation]) => revocation),
    put: (revocation) => table.put(revocation.subject, revocation),
    remove: (subject) => table.remove(subject),
  };
}
