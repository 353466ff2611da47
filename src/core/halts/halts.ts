import type { AgentEntry } from '../agents/agent-entry.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import { agentKeyOf } from '../base/ids.ts';
import { Multimap } from '../base/lists.ts';
import { assert } from '../base/result.ts';
import { compileGlob } from '../policy/glob.ts';
import { type Halt, type HaltScope, namesAgent, orgOfScope, parseHaltScope } from './halt.ts';

/** A halt in force, prepared for checks. */
type Active = {
  readonly halt: Halt;
  readonly scope: HaltScope;
  readonly coversAction: (action: string) => boolean;
  /** The numbers of the operations that it keeps paused, with the slots where they live. */
  readonly paused: Map<number, number>;
};

/** Released halts that are remembered for listings; older ones are dropped. */
const MAX_RELEASED = 10_000;
/** Halts in force at once. Each check looks at those of its org, and at the global ones. */
export const MAX_ACTIVE_HALTS = 1_000;

const EVERY_ORG = '';

/**
 * The halts in force, by the org that they are about, and those released. A gateway without a halt pays one comparison
 * a check.
 */
export class HaltRegistry {
  readonly #agents: AgentRegistry;
  readonly #active = new Map<string, Active>();
  /** Global ones lie under {@link EVERY_ORG}. */
  readonly #byOrg = new Multimap<string, Active>();
  readonly #released = new Map<string, Halt>();
  /** How many halts keep an operation paused, by its number in the registry of operations. */
  readonly #holders = new Map<number, number>();

  constructor(agents: AgentRegistry) {
    this.#agents = agents;
  }

  get activeCount(): number {
    return this.#active.size;
  }

  /** The oldest halt in force that covers this action of the agent. */
  covering(entry: AgentEntry, action: string): Halt | undefined {
    return this.#active.size === 0 ? undefined : this.#find(entry, ({ coversAction }) => coversAction(action))?.halt;
  }

  /** The oldest halt in force that covers the agent for every action, so that it may not even register an operation. */
  coveringAll(entry: AgentEntry): Halt | undefined {
    if (this.#active.size === 0) return undefined;
    return this.#find(entry, ({ halt }) => halt.actions.includes('*'))?.halt;
  }

  get(id: string): Halt | undefined {
    return this.#active.get(id)?.halt ?? this.#released.get(id);
  }

  /** Iterates over halts: active ones, then released ones, each the newest first. */
  *all(): Iterable<Halt> {
    for (const { halt } of [...this.#active.values()].reverse()) yield halt;
    for (const halt of [...this.#released.values()].reverse()) yield halt;
  }

  /** Returns active halts that have expired. */
  expiredAt(nowMs: number): readonly Halt[] {
    return [...this.#active.values()].flatMap(({ halt }) => ((halt.expiresAtMs ?? Infinity) <= nowMs ? [halt] : []));
  }

  /**
   * Puts a halt in force, or a released one among those released. A halt of the same id is replaced; the operations
   * that it keeps paused stay its own.
   */
  put(halt: Halt): void {
    const paused = this.#active.get(halt.id)?.paused ?? new Map<number, number>();
    this.remove(halt.id);
    if (halt.released !== undefined) return this.#remember(halt);
    const scope = parseHaltScope(halt.scope);
    assert(scope !== undefined, 'the scope of a halt was read before');
    const globs = halt.actions.map(compileGlob);
    const active: Active = {
      halt,
      scope,
      coversAction: (action) => globs.some((glob) => glob.matches(action)),
      paused,
    };
    for (const number of paused.keys()) this.#hold(number);
    this.#active.set(halt.id, active);
    this.#byOrg.add(orgOfScope(scope) ?? EVERY_ORG, active);
  }

  /** As if it had never been. Operations that it kept paused are no longer its. */
  remove(id: string): void {
    this.#released.delete(id);
    const active = this.#active.get(id);
    if (active === undefined) return;
    this.#active.delete(id);
    this.#byOrg.delete(orgOfScope(active.scope) ?? EVERY_ORG, active);
    for (const number of active.paused.keys()) this.#letGo(number);
  }

  /** The released halts that listings no longer need; the caller removes them from its store. */
  *excess(): Iterable<string> {
    let excess = this.#released.size - MAX_RELEASED;
    for (const id of this.#released.keys()) {
      if (excess <= 0) return;
      excess -= 1;
      yield id;
    }
  }

  /** Notes that the halt keeps this operation paused: it has paused it, or another halt had. */
  keepPaused(id: string, number: number, slot: number): void {
    const paused = this.#active.get(id)?.paused;
    if (paused === undefined || paused.has(number)) return;
    paused.set(number, slot);
    this.#hold(number);
  }

  /** Whether any halt keeps the operation of this number paused. */
  isKeptPaused(number: number): boolean {
    return this.#holders.has(number);
  }

  /**
   * The oldest halt in force that covers the agent for any action of an operation, which `isAnyAction` goes through.
   */
  coveringAny(entry: AgentEntry, isAnyAction: (isCovered: (action: string) => boolean) => boolean): Halt | undefined {
    if (this.#active.size === 0) return undefined;
    return this.#find(entry, ({ coversAction }) => isAnyAction(coversAction))?.halt;
  }

  /** Whether this halt is in force and covers the agent, for an action that `isMeant` accepts. */
  reaches(id: string, entry: AgentEntry, isMeant: (isCovered: (action: string) => boolean) => boolean): boolean {
    const active = this.#active.get(id);
    return active !== undefined && isMeant(active.coversAction) && this.#reaches(active.scope, entry);
  }

  /** The operations that this halt keeps paused: slots by their numbers. */
  pausedBy(id: string): ReadonlyMap<number, number> {
    return this.#active.get(id)?.paused ?? new Map();
  }

  #find(entry: AgentEntry, isMeant: (active: Active) => boolean): Active | undefined {
    const { orgId } = entry.identity;
    for (const org of orgId === EVERY_ORG ? [EVERY_ORG] : [EVERY_ORG, orgId])
      for (const active of this.#byOrg.of(org))
        if (isMeant(active) && this.#reaches(active.scope, entry)) return active;
    return undefined;
  }

  /** A lineage that is too long to follow counts as covered. */
  #reaches(scope: HaltScope, { identity, key }: AgentEntry): boolean {
    if (scope.tier !== 'lineage') return namesAgent(scope, identity);
    return this.#agents.descends(key, agentKeyOf(scope)) !== false;
  }

  #remember(halt: Halt): void {
    this.#released.set(halt.id, halt);
  }

  #hold(number: number): void {
    this.#holders.set(number, (this.#holders.get(number) ?? 0) + 1);
  }

  #letGo(number: number): void {
    const left = (this.#holders.get(number) ?? 0) - 1;
    if (left <= 0) this.#holders.delete(number);
    else this.#holders.set(number, left);
  }
}
