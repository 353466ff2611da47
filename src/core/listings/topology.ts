/** Pages over orgs, teams and lineages, each of bounded work (docs/spec.md, Agents). */
import { type AgentEntry, type AgentGroup, viewOfAgent } from '../agents/agent-entry.ts';
import type { AgentView } from '../agents/agent-view.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import { BAD_CURSOR, type CursorFault, firstPage, type PageRequest, placeOfCursor } from '../base/page.ts';
import { ok, type Result } from '../base/result.ts';
import { type OpCounts, zeroOpCounts } from '../ops/op-state.ts';

export type GroupStats = {
  readonly orgId: string;
  /** Undefined: these are the numbers of the whole org. */
  readonly teamId: string | undefined;
  /** Registered agents. */
  readonly agentCount: number;
  /** How many of them were seen in the last five minutes. */
  readonly agentsSeen: number;
  readonly ops: OpCounts;
};

export type AgentsWithTeams = {
  /** The teams of these agents, each with the numbers of the whole team. */
  readonly teams: readonly GroupStats[];
  readonly agents: readonly AgentView[];
  readonly next: string | undefined;
};
export type Overview = AgentsWithTeams & {
  readonly orgCount: number;
  readonly teamCount: number;
  readonly agentCount: number;
};

/** An agent and its descendants. `isCut`: it has more children than are shown; its lineage lists them. */
export type TreeNode = { readonly agent: AgentView; readonly children: readonly TreeNode[]; readonly isCut: boolean };
export type Tree = { readonly roots: readonly TreeNode[]; readonly next: string | undefined };

export type AgentLineage = {
  readonly agent: AgentView;
  /** The nearest first. */
  readonly ancestors: readonly AgentView[];
  /** The nearest first; `depth` 1 is a child. */
  readonly descendants: readonly { readonly agent: AgentView; readonly depth: number }[];
  readonly isCut: boolean;
};

export type LineagePage = { readonly lineages: readonly AgentLineage[]; readonly next: string | undefined };

export type Stats = {
  readonly orgCount: number;
  readonly teamCount: number;
  readonly agentCount: number;
  readonly agentsSeen: number;
  readonly ops: OpCounts;
  /** The orgs, or the teams of the one org that was asked for. */
  readonly groups: readonly GroupStats[];
  readonly next: string | undefined;
};

/** Limits on an answer in addition to the page size. */
const TREE_LIMITS = { nodes: 5_000, depth: 32, scanned: 20_000 } as const;
const MAX_ORGS_LOOKED_AT = 20_000;
const LINEAGE_LIMITS = { ancestors: 100, descendants: 1_000 } as const;

type Paged<T> = Result<T, CursorFault>;
/** A page of one org's, or of all orgs'. */
type Asked = PageRequest & { readonly orgId: string | undefined };

/**
 * How many orgs, teams and agents are registered, with a page of the agents. Fault: `invalid_argument` for the cursor,
 * as of all these views.
 */
export function overview(agents: AgentRegistry, asked: Asked, nowMs: number): Paged<Overview> {
  const listed = agentsWithTeams(agents, { ...asked, teamId: undefined }, nowMs);
  if (!listed.ok) return listed;
  return ok({ ...countsOf(agents, asked.orgId), ...listed.value });
}

/** How many are registered in this org, or in all of them. */
function countsOf(
  { groups, registeredCount }: AgentRegistry,
  orgId: string | undefined,
): Omit<Overview, keyof AgentsWithTeams> {
  if (orgId === undefined)
    return { orgCount: groups.registeredOrgs, teamCount: groups.registeredTeams, agentCount: registeredCount };
  const org = groups.orgs.get(orgId);
  const agentCount = org?.agents.size ?? 0;
  // The group of agents without an org does not count as an org.
  return { orgCount: orgId !== '' && agentCount > 0 ? 1 : 0, teamCount: org?.teams.registered.size ?? 0, agentCount };
}

/**
 * Registered agents, org by org, in each in the order of registration. Without `orgId`, of every org; without `teamId`,
 * of every team. Where a team is rare among many orgs, a page may be short or even empty and still have a `next` to go
 * on from.
 */
export function agentsWithTeams(
  agents: AgentRegistry,
  { orgId, teamId, perPage, cursor }: Asked & { readonly teamId: string | undefined },
  nowMs: number,
): Paged<AgentsWithTeams> {
  const after = readCursor(cursor);
  if (after === undefined) return BAD_CURSOR;
  const shown: AgentEntry[] = [];
  const page = (next: string | undefined): Paged<AgentsWithTeams> =>
    ok({ teams: teamsOf(shown, nowMs), agents: shown.map(viewOfAgent), next });
  let last = after;
  let lookedAt = 0;
  for (const org of orgsFrom(agents, orgId, after)) {
    if (lookedAt === MAX_ORGS_LOOKED_AT) return page(cursorOf(last));
    lookedAt += 1;
    for (const agent of agentsOf(org, teamId, after)) {
      if (shown.length === perPage) return page(cursorOf(last));
      shown.push(agent);
      last = { org: org.registration, registration: agent.registration };
    }
    if (last.org !== org.registration) last = { org: org.registration, registration: 0 };
  }
  return page(undefined);
}

/**
 * Agents without a registered parent, each with all its descendants. Where roots are rare, a page may be short or even
 * empty and still have a `next` to go on from.
 */
export function tree(agents: AgentRegistry, { orgId, perPage, cursor }: Asked): Paged<Tree> {
  const after = readCursor(cursor);
  if (after === undefined) return BAD_CURSOR;
  const budget = { nodes: TREE_LIMITS.nodes };
  const roots: TreeNode[] = [];
  let next: string | undefined;
  let scanned = 0;
  for (const { org, agent } of agentsAfter(agents, orgId, after)) {
    if (scanned === TREE_LIMITS.scanned) return ok({ roots, next });
    scanned += 1;
    if (parentOf(agents, agent) === undefined) {
      if (roots.length === perPage || budget.nodes <= 0) return ok({ roots, next });
      roots.push(nodeOf(agents, agent, 1, budget));
    }
    next = cursorOf({ org: org.registration, registration: agent.registration });
  }
  return ok({ roots, next: undefined });
}

function nodeOf(agents: AgentRegistry, agent: AgentEntry, depth: number, budget: { nodes: number }): TreeNode {
  budget.nodes -= 1;
  const below = agents.childrenOf(agent.key);
  const children: TreeNode[] = [];
  for (const child of below) {
    if (depth === TREE_LIMITS.depth || budget.nodes <= 0) break;
    children.push(nodeOf(agents, child, depth + 1, budget));
  }
  return { agent: viewOfAgent(agent), children, isCut: children.length < below.size };
}

/** The lineages of every agent of this name: there may be one in each team of each org. */
export function lineages(
  agents: AgentRegistry,
  { orgId, agentId, perPage, cursor }: Asked & { readonly agentId: string },
): Paged<LineagePage> {
  const after = placeOfCursor(cursor);
  if (after === undefined) return BAD_CURSOR;
  const namesakes =
    orgId === undefined ? agents.namedAfter(agentId, after) : agents.namedInOrgAfter(orgId, agentId, after);
  const { items, next } = firstPage(namesakes, perPage, ({ registration }) => String(registration));
  return ok({ lineages: items.map((agent) => lineageOf(agents, agent)), next });
}

function lineageOf(agents: AgentRegistry, agent: AgentEntry): AgentLineage {
  const ancestors = ancestorsOf(agents, agent);
  const descendants = descendantsOf(agents, agent);
  return {
    agent: viewOfAgent(agent),
    ancestors: ancestors.shown,
    descendants: descendants.shown,
    isCut: ancestors.isCut || descendants.isCut,
  };
}

function ancestorsOf(
  agents: AgentRegistry,
  agent: AgentEntry,
): { readonly shown: AgentLineage['ancestors']; readonly isCut: boolean } {
  const shown: AgentView[] = [];
  for (let above = parentOf(agents, agent); above !== undefined; above = parentOf(agents, above)) {
    if (shown.length === LINEAGE_LIMITS.ancestors) return { shown, isCut: true };
    shown.push(viewOfAgent(above));
  }
  return { shown, isCut: false };
}

function descendantsOf(
  agents: AgentRegistry,
  agent: AgentEntry,
): { readonly shown: AgentLineage['descendants']; readonly isCut: boolean } {
  const shown: { agent: AgentView; depth: number }[] = [];
  const queue = [{ agent, depth: 0 }];
  for (const { agent: parent, depth } of queue) {
    // which grows meanwhile
    for (const child of agents.childrenOf(parent.key)) {
      if (shown.length === LINEAGE_LIMITS.descendants) return { shown, isCut: true };
      shown.push({ agent: viewOfAgent(child), depth: depth + 1 });
      queue.push({ agent: child, depth: depth + 1 });
    }
  }
  return { shown, isCut: false };
}

/**
 * The counts of every org, or of one and its teams (`agentsSeen`: in the last five minutes), a page of groups at a
 * time.
 */
export function stats(
  agents: AgentRegistry,
  allOps: Readonly<OpCounts>,
  { orgId, perPage, cursor }: Asked,
  nowMs: number,
): Paged<Stats> {
  const after = placeOfCursor(cursor);
  if (after === undefined) return BAD_CURSOR;
  const { groups } = agents;
  const org = orgId === undefined ? undefined : groups.orgs.get(orgId);
  const listed = orgId === undefined ? groups.orgs : org?.teams;
  const { items, next } = firstPage(listed?.after(after) ?? [], perPage, ({ sequence }) => String(sequence));
  const seen = orgId === undefined ? groups.seen : org?.seen;
  const ops = orgId === undefined ? allOps : (org?.ops ?? zeroOpCounts());
  return ok({
    ...countsOf(agents, orgId),
    agentsSeen: seen?.count(nowMs) ?? 0,
    ops: { ...ops },
    groups: items.map((group) => statsOf(group, nowMs)),
    next,
  });
}

const statsOf = ({ orgId, teamId, agents, seen, ops }: AgentGroup, nowMs: number): GroupStats => ({
  orgId,
  teamId,
  agentCount: agents.size,
  agentsSeen: seen.count(nowMs),
  ops: { ...ops },
});

const teamsOf = (agents: readonly AgentEntry[], nowMs: number): readonly GroupStats[] =>
  [...new Set(agents.map(({ team }) => team))].map((team) => statsOf(team, nowMs));

/** The one org that was asked for, or all of them from the cursor's on. */
function orgsFrom(
  agents: AgentRegistry,
  orgId: string | undefined,
  { org: registration }: Place,
): Iterable<AgentGroup> {
  const { orgs } = agents.groups;
  if (orgId === undefined) return orgs.registered.after(registration - 1);
  const org = orgs.get(orgId);
  return org === undefined || org.registration < registration ? [] : [org];
}

/** Both by their `registration`. */
type Place = { readonly org: number; readonly registration: number };

function* agentsAfter(
  agents: AgentRegistry,
  orgId: string | undefined,
  after: Place,
): Generator<{ readonly org: AgentGroup; readonly agent: AgentEntry }> {
  for (const org of orgsFrom(agents, orgId, after))
    for (const agent of agentsOf(org, undefined, after)) yield { org, agent };
}

function agentsOf(org: AgentGroup, teamId: string | undefined, after: Place): Iterable<AgentEntry> {
  const group = teamId === undefined ? org : org.teams.get(teamId);
  return group?.agents.after(org.registration === after.org ? after.registration : 0) ?? [];
}

const cursorOf = ({ org, registration }: Place): string => `${org}.${registration}`;

function readCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return { org: 0, registration: 0 };
  const [, org, registration] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? [];
  return org === undefined ? undefined : { org: Number(org), registration: Number(registration) };
}

/** A deregistered parent no longer counts. */
function parentOf(agents: AgentRegistry, { parent }: AgentEntry): AgentEntry | undefined {
  const entry = parent === undefined ? undefined : agents.get(parent);
  return entry?.isRegistered === true ? entry : undefined;
}
