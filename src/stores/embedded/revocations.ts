import type { Revocation, RevocationStore } from '../../credentials/revocations.ts';
import type { EmbeddedStore } from './store.ts';

export function createEmbeddedRevocationStore(store: EmbeddedStore): RevocationStore {
  const table = store.table<Revocation>('revocations');
  return {
    all: () => Array.from(table.entries(), ([, revocation]) => revocation),
    put: (revocation) => table.put(revocation.subject, revocation),
    remove: (subject) => table.remove(subject),
  };
}
