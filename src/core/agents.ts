import type { BudgetHandle } from './budget.ts';
import { agentKeyOf, type AgentIdentity, type AgentKey, type SecretDigest } from './ids.ts';

/**
 * One identity the gateway knows. It is *registered* while it has a credential; an identity that only has operations
 * (acted for by an operator's credential) is known without being registered, and forgotten with its last operation.
 */
export class AgentEntry {
  readonly identity: AgentIdentity;
  readonly key: AgentKey;
  /** The name under which the audit log knows it as the cause of something. */
  readonly actor: string;
  credential: SecretDigest | undefined = undefined;
  registeredAtMs = 0;
  /** Grows with every registration: the order of listings, and their cursor. */
  registration = 0;
  /** When the agent itself last asked something. */
  lastSeenMs = 0;
  parent: AgentKey | undefined = undefined;
  /** Operations in the registry, and those of them that have not finished. Kept by the operations registry. */
  ops = 0;
  unfinishedOps = 0;
  /** Its place in the budgets, once something of its was checked against them. */
  budget: BudgetHandle | undefined = undefined;

  constructor(identity: AgentIdentity, key: AgentKey) {
    this.identity = identity;
    this.key = key;
    this.actor = `agent:${key}`;
  }

  get isRegistered(): boolean { return this.credential !== undefined; }
}

/** What survives a restart of an agent: its registration, never its secret. */
export type AgentRegistration = {
  readonly identity: AgentIdentity;
  readonly credential: SecretDigest;
  readonly registeredAtMs: number;
  readonly parent: AgentKey | undefined;
};

export type OrgMembers = {
  readonly orgId: string;
  /** In the order of registration. */
  readonly agents: Map<AgentKey, AgentEntry>;
  readonly teams: Map<string, Set<AgentEntry>>;
};

/** The registry of agents: by the whole triple, by credential, and by org, team and parent (spec: Agent identity). */
export class AgentRegistry {
  readonly #byKey = new Map<AgentKey, AgentEntry>();
  readonly #registered = new Map<AgentKey, AgentEntry>();
  readonly #byCredential = new Map<SecretDigest, AgentEntry>();
  readonly #byOrg = new Map<string, OrgMembers>();
  readonly #byParent = new Map<AgentKey, Set<AgentEntry>>();
  readonly #onForgotten: (entry: AgentEntry) => void;
  #registrations = 0;

  constructor(onForgotten: (entry: AgentEntry) => void = () => {}) { this.#onForgotten = onForgotten; }

  get registeredCount(): number { return this.#registered.size; }

  /** Registered, or with operations: everything that takes memory. */
  get knownCount(): number { return this.#byKey.size; }

  /** Every registered agent, in the order of registration. */
  registered(): IterableIterator<AgentEntry> { return this.#registered.values(); }

  get(key: AgentKey): AgentEntry | undefined { return this.#byKey.get(key); }

  /** The owner of a credential: the reverse index. */
  ownerOf(credential: SecretDigest): AgentEntry | undefined { return this.#byCredential.get(credential); }

  /** The registered members of an org, or undefined when it has none. */
  membersOf(orgId: string): OrgMembers | undefined { return this.#byOrg.get(orgId); }

  orgs(): IterableIterator<OrgMembers> { return this.#byOrg.values(); }

  /** The registered agents that named this one as their parent. */
  childrenOf(key: AgentKey): ReadonlySet<AgentEntry> { return this.#byParent.get(key) ?? NO_AGENTS; }

  /** The entry of an identity. One that is not known yet is made, but only {@link keep} makes it stay. */
  lookUp(identity: AgentIdentity): AgentEntry {
    const key = agentKeyOf(identity);
    return this.#byKey.get(key) ?? new AgentEntry(identity, key);
  }

  /** Holds on to an entry that is about to get its first operation or its registration. */
  keep(entry: AgentEntry): AgentEntry {
    if (entry.credential === undefined && entry.ops === 0) this.#byKey.set(entry.key, entry);
    return entry;
  }

  /** Registers, or registers again: then the new credential takes the place of the old one at once. */
  register({ identity, credential, registeredAtMs, parent }: AgentRegistration): AgentEntry {
    const entry = this.keep(this.lookUp(identity));
    if (entry.credential === undefined) {
      this.#registrations += 1;
      entry.registration = this.#registrations;
      this.#registered.set(entry.key, entry);
      this.#addToOrg(entry);
      entry.registeredAtMs = registeredAtMs;
    } else {
      this.#byCredential.delete(entry.credential);
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
    this.#byCredential.delete(entry.credential);
    entry.credential = undefined;
    this.#setParent(entry, undefined);
    this.#removeFromOrg(entry);
    this.#registered.delete(key);
    this.forgetIfUnused(entry);
    return true;
  }

  /** Lets go of an identity that is not registered and has no operation left. */
  forgetIfUnused(entry: AgentEntry): void {
    if (entry.credential !== undefined || entry.ops > 0) return;
    this.#byKey.delete(entry.key);
    this.#onForgotten(entry);
  }

  #addToOrg(entry: AgentEntry): void {
    const { orgId, teamId } = entry.identity;
    let org = this.#byOrg.get(orgId);
    if (org === undefined) {
      org = { orgId, agents: new Map(), teams: new Map() };
      this.#byOrg.set(orgId, org);
    }
    org.agents.set(entry.key, entry);
    const team = org.teams.get(teamId);
    if (team === undefined) org.teams.set(teamId, new Set([entry]));
    else team.add(entry);
  }

  #removeFromOrg(entry: AgentEntry): void {
    const { orgId, teamId } = entry.identity;
    const org = this.#byOrg.get(orgId);
    if (org === undefined) return;
    org.agents.delete(entry.key);
    const team = org.teams.get(teamId);
    team?.delete(entry);
    if (team?.size === 0) org.teams.delete(teamId);
    if (org.agents.size === 0) this.#byOrg.delete(orgId);
  }

  #setParent(entry: AgentEntry, parent: AgentKey | undefined): void {
    if (entry.parent === parent) return;
    if (entry.parent !== undefined) {
      const siblings = this.#byParent.get(entry.parent);
      siblings?.delete(entry);
      if (siblings?.size === 0) this.#byParent.delete(entry.parent);
    }
    entry.parent = parent;
    if (parent === undefined) return;
    const siblings = this.#byParent.get(parent);
    if (siblings === undefined) this.#byParent.set(parent, new Set([entry]));
    else siblings.add(entry);
  }
}

const NO_AGENTS: ReadonlySet<AgentEntry> = new Set();
