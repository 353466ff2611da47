import type { AgentRegistration } from '../../core/agents.ts';
import { agentKeyOf, type AgentKey } from '../../core/ids.ts';
import type { AgentStore } from '../../gateway/ports.ts';
import type { EmbeddedStore } from './lmdb.ts';

/**
 * Registrations in the embedded store. Its keys are limited in bytes, and three names can be longer than that: the digest of the
 * credential, which no two agents share, is short and always there.
 */
export function createLmdbAgents(store: EmbeddedStore): AgentStore {
  const table = store.table<string, AgentRegistration>('agents');
  const keyInStore = new Map<AgentKey, string>();
  return {
    *load() {
      for (const [credential, row] of table.entries()) {
        keyInStore.set(agentKeyOf(row.identity), credential);
        yield row;
      }
    },
    async save(registration) {
      const key = agentKeyOf(registration.identity);
      const before = keyInStore.get(key);
      keyInStore.set(key, registration.credential);
      await table.transaction((inTransaction) => {
        if (before !== undefined) inTransaction.remove(before);
        inTransaction.put(registration.credential, registration);
      });
    },
    async remove(key) {
      const before = keyInStore.get(key);
      keyInStore.delete(key);
      if (before !== undefined) await table.remove(before);
    },
  };
}
