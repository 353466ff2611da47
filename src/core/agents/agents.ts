import { type AgentIdentity, type AgentKey, agentKeyOf, type SecretDigest } from '../base/ids.ts';
import { Multimap } from '../base/lists.ts';
import { SequencedList } from '../base/sorted.ts';
import { AgentEntry, type AgentGroup, AgentGroups, AgentNames, minuteOf } from './agent-entry.ts';

/** Registering an agent looks at all of its ancestors, and everything else waits meanwhile. */
export const MAX_ANCESTORS = 1_000;
/** The part of an agent that survives a restart of the gateway: its registration, never its secret. */
export type AgentRegistration = {
  readonly identity: AgentIdentity;
  readonly credential: SecretDigest;
  readonly registeredAtMs: number;
  readonly parent: AgentKey | undefined;
};

/**
 * The registry of agents: by org/team/agent, by credential, by parent, and by org and team (docs/spec.md, Identity).
 */
export class AgentRegistry {
  readonly #byKey = new Map<AgentKey, AgentEntry>();
  readonly #registered = new SequencedList<AgentEntry>();
  readonly #byCredential = new Map<SecretDigest, AgentEntry>();
  readonly #byParent = new Multimap<AgentKey, AgentEntry>();
  readonly #names = new AgentNames();
  readonly groups = new AgentGroups();
  readonly #onDropped: (entry: AgentEntry) => void;
  #registrations = 0;

  constructor(onDropped: (entry: AgentEntry) => void = () => {}) {
    this.#onDropped = onDropped;
  }

  get registeredCount(): number {
    return this.#registered.size;
  }

  /** How many agents are registered or have operations: all that take memory. */
  get knownCount(): number {
    return this.#byKey.size;
  }

  /** Every agent registered after this number, in the order of registration. */
  registeredAfter(registration: number): Iterable<AgentEntry> {
    return this.#registered.after(registration);
  }

  get(key: AgentKey): AgentEntry | undefined {
    return this.#byKey.get(key);
  }

  /** The agent that this credential belongs to. */
  ownerOf(credential: SecretDigest): AgentEntry | undefined {
    return this.#byCredential.get(credential);
  }

  /** The registered agents that named this one as their parent. */
  childrenOf(key: AgentKey): ReadonlySet<AgentEntry> {
    return this.#byParent.of(key);
  }

  /** Whether the agent is this ancestor, or descends from it. Undefined: it has too many ancestors to tell. */
  descends(key: AgentKey, ancestor: AgentKey): boolean | undefined {
    let at: AgentKey | undefined = key;
    for (let looked = 0; looked <= MAX_ANCESTORS; looked += 1) {
      if (at === undefined || at === ancestor) return at !== undefined;
      at = this.#byKey.get(at)?.parent;
    }
    return undefined;
  }

  /** The first agent of the lineage, as far as agents are known: itself where it names no parent. */
  firstOf(key: AgentKey): AgentKey {
    let first = key;
    for (let looked = 0; looked <= MAX_ANCESTORS; looked += 1) {
      const parent = this.#byKey.get(first)?.parent;
      if (parent === undefined) break;
      first = parent;
    }
    return first;
  }

  /**
   * The agents of this name in every org and team that were registered after this number, in the order of registration.
   */
  namedAfter(agentId: string, registration: number): Iterable<AgentEntry> {
    return this.#names.after(agentId, registration);
  }

  /**
   * The same in one org. Looked up team by team rather than filtered from all: otherwise the time taken would reveal
   * how many the other orgs have, and a very large org would slow down the others. An org with very many teams has an
   * index of its own.
   */
  namedInOrgAfter(orgId: string, agentId: string, registration: number): Iterable<AgentEntry> {
    const org = this.groups.orgs.get(orgId);
    if (org === undefined) return [];
    if (org.names !== undefined || org.teams.registered.size > FEW_TEAMS)
      return namesIn(org).after(agentId, registration);
    const found: AgentEntry[] = [];
    for (const { teamId = '' } of org.teams.registered.after(0)) {
      const entry = this.#byKey.get(agentKeyOf({ orgId, teamId, agentId }));
      if (entry?.isRegistered && entry.registration > registration) found.push(entry);
    }
    return found.sort((a, b) => a.registration - b.registration);
  }

  /** Notes that the agent itself has sent a request. */
  touch(entry: AgentEntry, nowMs: number): void {
    const before = minuteOf(entry.lastSeenMs);
    const minute = minuteOf(nowMs);
    entry.lastSeenMs = nowMs;
    if (minute === before) return;
    for (const { seen } of [entry.org, entry.team, this.groups]) {
      seen.remove(before);
      seen.add(minute);
    }
  }

  /** The entry of an identity. An unknown one gets a new entry, which stays only after {@link keep}. */
  lookUp(identity: AgentIdentity): AgentEntry {
    const key = agentKeyOf(identity);
    return this.#byKey.get(key) ?? new AgentEntry(identity, key);
  }

  /** Adds an entry to the registry, if it is not there yet. Call it before the first operation or the registration. */
  keep(entry: AgentEntry): AgentEntry {
    if (entry.credential === undefined && entry.ops === 0) {
      this.#byKey.set(entry.key, entry);
      const { org, team } = this.groups.enter(entry.identity.orgId, entry.identity.teamId);
      entry.org = org;
      entry.team = team;
    }
    return entry;
  }

  /** The registration as a restart would restore it; undefined for an agent that is not registered. */
  registrationOf(key: AgentKey): AgentRegistration | undefined {
    const entry = this.#byKey.get(key);
    return entry?.credential === undefined
      ? undefined
      : {
          identity: entry.identity,
          credential: entry.credential,
          registeredAtMs: entry.registeredAtMs,
          parent: entry.parent,
        };
  }

  /** Registers an agent. When it is registered already, the new credential replaces the old one at once. */
  register({ identity, credential, registeredAtMs, parent }: AgentRegistration): AgentEntry {
    const entry = this.keep(this.lookUp(identity));
    if (entry.credential === undefined) {
      this.#registrations += 1;
      entry.registration = this.#registrations;
      this.#registered.add(entry.registration, entry);
      this.#names.add(entry);
      entry.org.names?.add(entry);
      this.groups.addRegistered(entry);
      entry.registeredAtMs = registeredAtMs;
    } else {
      this.#release(entry, entry.credential);
    }
    entry.credential = credential;
    this.#byCredential.set(credential, entry);
    this.#setParent(entry, parent);
    return entry;
  }

  /** Forgets the registration and its credential; false when there was none. */
  deregister(key: AgentKey): boolean {
    const entry = this.#byKey.get(key);
    if (entry?.credential === undefined) return false;
    this.#release(entry, entry.credential);
    entry.credential = undefined;
    this.#setParent(entry, undefined);
    this.#names.remove(entry);
    entry.org.names?.remove(entry);
    this.groups.removeRegistered(entry);
    this.#unsee(entry);
    this.#registered.remove(entry.registration);
    this.dropIfUnused(entry);
    return true;
  }

  /** Another agent may hold it by now: where two have registered with it at once, until one is rolled back. */
  #release(entry: AgentEntry, credential: SecretDigest): void {
    if (this.#byCredential.get(credential) === entry) this.#byCredential.delete(credential);
  }

  /**
   * Removes an identity that is neither registered nor has operations. Call it after a deregistration and after a
   * sweep.
   */
  dropIfUnused(entry: AgentEntry): void {
    if (entry.credential !== undefined || entry.ops > 0) return;
    this.#byKey.delete(entry.key);
    this.groups.leave(entry.org, entry.team);
    this.#onDropped(entry);
  }

  /** A deregistered agent no longer counts as seen. */
  #unsee(entry: AgentEntry): void {
    for (const { seen } of [entry.org, entry.team, this.groups]) seen.remove(minuteOf(entry.lastSeenMs));
    entry.lastSeenMs = 0;
  }

  #setParent(entry: AgentEntry, parent: AgentKey | undefined): void {
    if (entry.parent === parent) return;
    if (entry.parent !== undefined) this.#byParent.delete(entry.parent, entry);
    if (parent !== undefined) this.#byParent.add(parent, entry);
    entry.parent = parent;
  }
}

/** Looking a name up in this many teams takes a millisecond or two. */
const FEW_TEAMS = 1_000;

/** The index of the org, made when it is first needed. */
function namesIn(org: AgentGroup): AgentNames {
  if (org.names !== undefined) return org.names;
  const names = new AgentNames();
  for (const agent of org.agents.after(0)) names.add(agent);
  org.names = names;
  return names;
}
