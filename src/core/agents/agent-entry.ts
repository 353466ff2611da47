import type { AgentIdentity, AgentKey, SecretDigest } from '../base/ids.ts';
import { SequencedList } from '../base/sorted.ts';
import type { BudgetHandle } from '../budget/envelope.ts';
import type { KnownRows } from '../limits/known-rows.ts';
import { type OpCounts, zeroOpCounts } from '../ops/op-state.ts';
import type { AgentView } from './agent-view.ts';

/**
 * Registered agents by name, each name's in the order of registration. Most names belong to a single agent, which then
 * needs no list.
 */
export class AgentNames {
  readonly #byName = new Map<string, AgentEntry | SequencedList<AgentEntry>>();

  /** Iterates over agents of this name that were registered after this number. */
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

const MINUTE_MS = 60_000;
const WINDOW_MINUTES = 5;
const SLOTS = WINDOW_MINUTES + 1; // five whole minutes, and the current one

export const minuteOf = (ms: number): number => Math.floor(ms / MINUTE_MS);

/** How many agents were seen in the last five minutes, to the minute: a count per minute, in a ring. */
class SeenCounter {
  readonly #counts: number[] = new Array<number>(SLOTS).fill(0);
  readonly #minutes: number[] = new Array<number>(SLOTS).fill(-1);

  add(minute: number): void {
    const slot = minute % SLOTS;
    if (this.#minutes[slot] !== minute) {
      this.#minutes[slot] = minute;
      this.#counts[slot] = 0;
    }
    this.#counts[slot]! += 1;
  }

  remove(minute: number): void {
    const slot = minute % SLOTS;
    if (this.#minutes[slot] === minute) this.#counts[slot]! -= 1;
  }

  count(nowMs: number): number {
    const oldest = minuteOf(nowMs) - WINDOW_MINUTES;
    return this.#counts.reduce((sum, count, slot) => (this.#minutes[slot]! >= oldest ? sum + count : sum), 0);
  }
}

/** Groups by name, and in the order in which they were added. */
class GroupTable {
  readonly #byId = new Map<string, AgentGroup>();
  readonly #inOrder = new SequencedList<AgentGroup>();
  /** Groups with a registered agent, by `registration`. Other groups may be far more. */
  readonly registered = new SequencedList<AgentGroup>();

  get(id: string): AgentGroup | undefined {
    return this.#byId.get(id);
  }

  /** The groups after this sequence number, in their order. */
  after(sequence: number): Iterable<AgentGroup> {
    return this.#inOrder.after(sequence);
  }

  add(id: string, group: AgentGroup): void {
    this.#byId.set(id, group);
    this.#inOrder.add(group.sequence, group);
  }

  remove(id: string, group: AgentGroup): void {
    this.#byId.delete(id);
    this.#inOrder.remove(group.sequence);
  }
}

/** An org, or a team in it: its agents, and counts that every change updates, so that reading them costs nothing. */
export class AgentGroup {
  readonly orgId: string;
  /** Undefined: the group is an org. */
  readonly teamId: string | undefined;
  /** Grows with every group. Listings are in this order, and their cursors are such numbers. */
  readonly sequence: number;
  /**
   * Its registered agents, in the order of registration. Groups without any, of which there may be many, share one
   * list.
   */
  agents = NO_AGENTS;
  /** The operations of all known agents, registered or not. */
  readonly ops: OpCounts = zeroOpCounts();
  readonly seen = new SeenCounter();
  /** The teams of an org; empty when the group is a team. */
  readonly teams: GroupTable;
  /** Slots of its oldest and its newest operation, kept by the registry of operations; -1: it has none. */
  firstOp = -1;
  lastOp = -1;
  /** The org's registered agents by name; only built once names are looked up in an org with very many teams. */
  names: AgentNames | undefined = undefined;
  /** How many of its agents are known. */
  known = 0;
  /** Grows with every group that gets its first registered agent. Pages over registered agents are in this order. */
  registration = 0;

  constructor(orgId: string, teamId: string | undefined, sequence: number) {
    this.orgId = orgId;
    this.teamId = teamId;
    this.sequence = sequence;
    this.teams = teamId === undefined ? new GroupTable() : NO_TEAMS;
  }

  /** Its operations in the registry, whatever their state. */
  get opCount(): number {
    const { pending, running, paused, completing, terminated } = this.ops;
    return pending + running + paused + completing + terminated;
  }
}

const NO_AGENTS = new SequencedList<AgentEntry>();
const NO_TEAMS = new GroupTable();

/** All orgs with their teams. A group exists as long as one of its agents is known. */
export class AgentGroups {
  readonly orgs = new GroupTable();
  readonly seen = new SeenCounter();
  #sequence = 0;
  #registrations = 0;
  /** How many teams of all orgs have a registered agent. */
  registeredTeams = 0;

  /** How many orgs have one. Agents without an org share a group, which does not count as an org. */
  get registeredOrgs(): number {
    return this.orgs.registered.size - ((this.orgs.get('')?.agents.size ?? 0) > 0 ? 1 : 0);
  }

  /** Counts a new agent as known, and returns its groups. */
  enter(orgId: string, teamId: string): { readonly org: AgentGroup; readonly team: AgentGroup } {
    const org = this.orgs.get(orgId) ?? this.#make(this.orgs, orgId, undefined);
    const team = org.teams.get(teamId) ?? this.#make(org.teams, orgId, teamId);
    org.known += 1;
    team.known += 1;
    return { org, team };
  }

  leave(org: AgentGroup, team: AgentGroup): void {
    org.known -= 1;
    team.known -= 1;
    if (team.known === 0) org.teams.remove(team.teamId ?? '', team);
    if (org.known === 0) this.orgs.remove(org.orgId, org);
  }

  addRegistered(agent: AgentEntry): void {
    const { org, team, registration } = agent;
    if (org.agents.size === 0) this.#addTo(this.orgs.registered, org);
    if (team.agents.size === 0) {
      this.#addTo(org.teams.registered, team);
      this.registeredTeams += 1;
    }
    org.agents.add(registration, agent);
    team.agents.add(registration, agent);
  }

  removeRegistered({ org, team, registration }: AgentEntry): void {
    org.agents.remove(registration);
    team.agents.remove(registration);
    if (org.agents.size === 0) removeFrom(this.orgs.registered, org);
    if (team.agents.size > 0) return;
    removeFrom(org.teams.registered, team);
    this.registeredTeams -= 1;
  }

  #addTo(registered: SequencedList<AgentGroup>, group: AgentGroup): void {
    group.agents = new SequencedList();
    this.#registrations += 1;
    group.registration = this.#registrations;
    registered.add(group.registration, group);
  }

  #make(groups: GroupTable, orgId: string, teamId: string | undefined): AgentGroup {
    this.#sequence += 1;
    const group = new AgentGroup(orgId, teamId, this.#sequence);
    groups.add(teamId ?? orgId, group);
    return group;
  }
}

function removeFrom(registered: SequencedList<AgentGroup>, group: AgentGroup): void {
  group.agents = NO_AGENTS;
  registered.remove(group.registration);
}

const NOWHERE = new AgentGroup('', undefined, 0);

/**
 * An identity the gateway knows. It is *registered* while it has a credential; an identity that only has operations
 * (acted for by an operator's credential) is known without being registered, and forgotten with its last operation.
 */
export class AgentEntry {
  readonly identity: AgentIdentity;
  readonly key: AgentKey;
  /** The groups it is counted in, from the moment the registry keeps it. */
  org: AgentGroup = NOWHERE;
  team: AgentGroup = NOWHERE;
  /** Its name as the `actor` of audit entries. */
  readonly actor: string;
  credential: SecretDigest | undefined = undefined;
  registeredAtMs = 0;
  /** Grows with every registration. Listings are in this order, and their cursors are such numbers. */
  registration = 0;
  /** When the agent itself last sent a request; 0: never. */
  lastSeenMs = 0;
  parent: AgentKey | undefined = undefined;
  /** How many operations it has, and how many of those have not finished. Kept by the registry of operations. */
  ops = 0;
  unfinishedOps = 0;
  /** Slots of its oldest and its newest operation, kept by the registry of operations; -1: it has none. */
  firstOp = -1;
  lastOp = -1;
  /** Its place in the budgets, once one of its requests was checked against them. */
  budget: BudgetHandle | undefined = undefined;
  /** The rows in which limits count it, once they have. */
  limitRows: KnownRows | undefined = undefined;

  constructor(identity: AgentIdentity, key: AgentKey) {
    this.identity = identity;
    this.key = key;
    this.actor = `agent:${key}`;
  }

  get isRegistered(): boolean {
    return this.credential !== undefined;
  }
}

export const viewOfAgent = (entry: AgentEntry): AgentView => ({
  identity: entry.identity,
  parent: entry.parent,
  registeredAtMs: entry.registeredAtMs,
  lastSeenMs: entry.lastSeenMs === 0 ? undefined : entry.lastSeenMs,
  activeOps: entry.unfinishedOps,
});
