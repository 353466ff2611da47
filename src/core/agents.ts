import { AgentGroup, AgentGroups, minuteOf } from './agent-groups.ts';
import type { BudgetHandle } from './budget.ts';
import type { AgentView } from './commands.ts';
import { agentKeyOf, type AgentIdentity, type AgentKey, type SecretDigest } from './ids.ts';

const NOWHERE = new AgentGroup('', undefined, 0);

/**
 * One identity the gateway knows. It is *registered* while it has a credential; an identity that only has operations
 * (acted for by an operator's credential) is known without being registered, and forgotten with its last operation.
 */
export class AgentEntry {
  readonly identity: AgentIdentity;
  readonly key: AgentKey;
  /** Where it is counted, from when the registry keeps it. */
  org: AgentGroup = NOWHERE;
  team: AgentGroup = NOWHERE;
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
  /** Grows with every org: the order of listings across orgs, and their cursor. */
  readonly sequence: number;
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
  /** One agent alone under its name, which is the usual case, needs no set. */
  readonly #byName = new Map<string, AgentEntry | Set<AgentEntry>>();
  readonly groups = new AgentGroups();
  readonly #onForgotten: (entry: AgentEntry) => void;
  #registrations = 0;
  #orgs = 0;

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

  /** The registered agents of this name, in every org and team. */
  named(agentId: string): Iterable<AgentEntry> {
    const found = this.#byName.get(agentId);
    return found instanceof AgentEntry ? [found] : found ?? NO_AGENTS;
  }

  /** The agent itself has asked something. */
  saw(entry: AgentEntry, nowMs: number): void {
    const before = minuteOf(entry.lastSeenMs);
    const minute = minuteOf(nowMs);
    entry.lastSeenMs = nowMs;
    if (minute === before) return;
    for (const { seen } of [entry.org, entry.team, this.groups]) {
      seen.remove(before);
      seen.add(minute);
    }
  }

  /** The entry of an identity. One that is not known yet is made, but only {@link keep} makes it stay. */
  lookUp(identity: AgentIdentity): AgentEntry {
    const key = agentKeyOf(identity);
    return this.#byKey.get(key) ?? new AgentEntry(identity, key);
  }

  /** Holds on to an entry that is about to get its first operation or its registration. */
  keep(entry: AgentEntry): AgentEntry {
    if (entry.credential === undefined && entry.ops === 0) {
      this.#byKey.set(entry.key, entry);
      const { org, team } = this.groups.enter(entry.identity.orgId, entry.identity.teamId);
      entry.org = org;
      entry.team = team;
    }
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
      this.#addName(entry);
      this.groups.countRegistered(entry.org, entry.team, 1);
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
    this.#removeName(entry);
    this.groups.countRegistered(entry.org, entry.team, -1);
    this.#unsee(entry);
    this.#registered.delete(key);
    this.forgetIfUnused(entry);
    return true;
  }

  /** Lets go of an identity that is not registered and has no operation left. */
  forgetIfUnused(entry: AgentEntry): void {
    if (entry.credential !== undefined || entry.ops > 0 || this.#byKey.get(entry.key) !== entry) return;
    this.#byKey.delete(entry.key);
    this.groups.leave(entry.org, entry.team);
    this.#onForgotten(entry);
  }

  #addToOrg(entry: AgentEntry): void {
    const { orgId, teamId } = entry.identity;
    let org = this.#byOrg.get(orgId);
    if (org === undefined) {
      this.#orgs += 1;
      org = { sequence: this.#orgs, orgId, agents: new Map(), teams: new Map() };
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

  #addName(entry: AgentEntry): void {
    const { agentId } = entry.identity;
    const known = this.#byName.get(agentId);
    if (known === undefined) this.#byName.set(agentId, entry);
    else if (known instanceof AgentEntry) this.#byName.set(agentId, new Set([known, entry]));
    else known.add(entry);
  }

  #removeName(entry: AgentEntry): void {
    const { agentId } = entry.identity;
    const known = this.#byName.get(agentId);
    if (known instanceof Set) known.delete(entry);
    if (known === entry || (known instanceof Set && known.size === 0)) this.#byName.delete(agentId);
  }

  /** A registration that ends takes what was seen of its agent with it. */
  #unsee(entry: AgentEntry): void {
    for (const { seen } of [entry.org, entry.team, this.groups]) seen.remove(minuteOf(entry.lastSeenMs));
    entry.lastSeenMs = 0;
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

export const viewOfAgent = (entry: AgentEntry): AgentView => ({
  identity: entry.identity,
  parent: entry.parent,
  registeredAtMs: entry.registeredAtMs,
  lastSeenMs: entry.lastSeenMs === 0 ? undefined : entry.lastSeenMs,
  activeOps: entry.unfinishedOps,
});

const NO_AGENTS: ReadonlySet<AgentEntry> = new Set();
