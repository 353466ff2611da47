/** A store that writes in order, when it is told to, and not always: what it has is all that a restart finds. */
import type { AgentRegistration } from '../../src/core/agents/agents.ts';
import { agentKeyOf } from '../../src/core/base/ids.ts';
import {
  type AgentStore,
  type BudgetStore,
  type StateStore,
  type StoredRow,
  StoreUnwritable,
} from '../../src/ports/ports.ts';

type Write = { readonly apply: () => void; readonly resolve: () => void; readonly reject: (error: Error) => void };

/** `repeated`: the disk has it twice. `unheard`: it is written, and the process ends before it knows. */
export type StoreOutcome = 'written' | 'repeated' | 'failed' | 'unheard';

export class SimulatedStore {
  readonly #agents = new Map<string, AgentRegistration>();
  readonly #budgets = new Map<string, StoredRow>();
  readonly #states = { halts: new Map<string, unknown>(), approvals: new Map(), webhooks: new Map() };
  #waiting: Write[] = [];

  get waiting(): number {
    return this.#waiting.length;
  }

  readonly agents: AgentStore = {
    load: () => [...this.#agents.values()],
    save: (registration) =>
      this.#write(() => void this.#agents.set(agentKeyOf(registration.identity), structuredClone(registration))),
    remove: (key) => this.#write(() => void this.#agents.delete(key)),
  };

  readonly budgets: BudgetStore = {
    load: () => [...this.#budgets.values()],
    save: (changes) => {
      const kept = structuredClone(changes);
      return this.#write(() => {
        for (const { key, row } of kept) {
          if (row === undefined) this.#budgets.delete(key);
          else this.#budgets.set(key, row);
        }
      });
    },
  };

  readonly states: StateStore = {
    load: (table) => [...this.#states[table]].map(([id, row]) => ({ id, row })),
    save: (table, id, row) => {
      const kept = structuredClone(row);
      return this.#write(() => void this.#states[table].set(id, kept));
    },
    remove: (table, id) => this.#write(() => void this.#states[table].delete(id)),
  };

  /** The oldest write ends in this way. */
  settle(outcome: StoreOutcome): void {
    const write = this.#waiting.shift();
    if (write === undefined) return;
    if (outcome === 'failed')
      return write.reject(new StoreUnwritable(Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' })));
    write.apply();
    if (outcome === 'repeated') write.apply();
    if (outcome !== 'unheard') write.resolve();
  }

  /** The process is gone, with all that was not written. */
  crash(): void {
    this.#waiting = [];
  }

  #write(apply: () => void): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ apply, resolve, reject }));
  }
}
