import type { AgentEntry } from './agents.ts';
import { SequencedList } from './sequenced-list.ts';

/**
 * Registered agents by name, each name's in the order of registration. Most names belong to a single agent, which then
 * needs no list.
 */
export class AgentNames {
  readonly #byName = new Map<string, AgentEntry | SequencedList<AgentEntry>>();

  /** Those of this name that were registered after this number. */
  after(agentId: string, registration: number): Iterable<AgentEntry> {
    const found = this.#byName.get(agentId);
    if (found instanceof SequencedList) return found.after(registration);
    return found !== undefined && found.registration > registration ? [found] : [];
  }

  /** Call it in the order of registration. */
  add(entry: AgentEntry): void {
    const { agentId } = entry.identity;
    const known = this.#byName.get(agentId);
    if (known === undefined) return void this.#byName.set(agentId, entry);
    if (known instanceof SequencedList) return known.add(entry.registration, entry);
    const namesakes = new SequencedList<AgentEntry>();
    for (const each of [known, entry]) namesakes.add(each.registration, each);
    this.#byName.set(agentId, namesakes);
  }

  remove(entry: AgentEntry): void {
    const { agentId } = entry.identity;
    const known = this.#byName.get(agentId);
    if (known instanceof SequencedList) known.remove(entry.registration);
    if (known === entry || (known instanceof SequencedList && known.size === 0)) this.#byName.delete(agentId);
  }
}
