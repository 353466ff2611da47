import type { AgentRegistration } from '../../core/agents/agents.ts';
import { type AgentKey, agentKeyOf } from '../../core/base/ids.ts';
import type { AgentStore } from '../../ports/ports.ts';
import { type EmbeddedStore, storedKey, type TableInTransaction } from './store.ts';

/**
 * Registrations in the embedded store: a single row for each agent, so that no token of before lies beside the one in
 * force.
 */
export function createEmbeddedAgents(store: EmbeddedStore): AgentStore {
  const table = store.table<AgentRegistration>('agents');
  /** Agents whose row lies under its credential, where earlier releases have put it. */
  const misplaced = new Map<AgentKey, string>();
  const clear = (inTransaction: TableInTransaction<AgentRegistration>, key: AgentKey): void => {
    inTransaction.remove(storedKey(key));
    const elsewhere = misplaced.get(key);
    if (elsewhere !== undefined) inTransaction.remove(elsewhere);
  };
  return {
    *load() {
      for (const [place, row] of table.entries()) {
        if (place === row.credential) misplaced.set(agentKeyOf(row.identity), place);
        yield row;
      }
    },
    save: (registration) =>
      store.transaction((inside) => {
        const key = agentKeyOf(registration.identity);
        const inTransaction = inside(table);
        clear(inTransaction, key);
        inTransaction.put(storedKey(key), registration);
      }),
    remove: (key) => store.transaction((inside) => clear(inside(table), key)),
  };
}
