/** Topology: orgs, teams and agents, and who descends from whom (docs/spec.md, Agents). */

import { isName } from '../../core/base/ids.ts';
import { append } from '../../core/base/lists.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import type { GroupStats, TreeNode } from '../../core/listings/topology.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { AnswerShape, Authorized, HttpReply, Route } from '../engine/route.ts';
import { NAME_RULE } from '../shared/limits.ts';
import { type Listing, withListing } from './body.ts';
import { topologyLineage, topologyOverview, topologyStats, topologyTeam, topologyTree } from './shapes.ts';
import { agentView, cursorView } from './views.ts';

function readName(field: string, text: string): Result<string, Fault> {
  return isName(text) ? ok(text) : invalid(field, NAME_RULE);
}

type Counts = { readonly orgCount: number; readonly teamCount: number; readonly agentCount: number };

const countsView = ({ orgCount, teamCount, agentCount }: Counts) => ({
  org_count: orgCount,
  team_count: teamCount,
  agent_count: agentCount,
});

async function overview(listing: Listing, link: Link): Promise<HttpReply> {
  const { reply } = await link.ask({ type: 'topology-overview', ...listing });
  if (!reply.ok) return reply;
  const { teams, agents } = reply.value;
  return ok({
    status: 200,
    body: {
      ...countsView(reply.value),
      teams: teams.map(teamView),
      agents: agents.map(agentView),
      ...cursorView(reply.value),
    },
  });
}

async function team(listing: Listing, link: Link, request: Authorized): Promise<HttpReply> {
  const teamId = readName('team_id', request.params.team_id ?? '');
  if (!teamId.ok) return teamId;
  const { reply } = await link.ask({ type: 'topology-team', teamId: teamId.value, ...listing });
  if (!reply.ok) return reply;
  const { teams, agents } = reply.value;
  return ok({
    status: 200,
    body: { teams: teams.map(teamView), agents: agents.map(agentView), ...cursorView(reply.value) },
  });
}

async function tree(listing: Listing, link: Link): Promise<HttpReply> {
  const { reply } = await link.ask({ type: 'topology-tree', ...listing });
  return reply.ok ? ok({ status: 200, body: { orgs: orgsOf(reply.value.roots), ...cursorView(reply.value) } }) : reply;
}

async function lineage(listing: Listing, link: Link, request: Authorized): Promise<HttpReply> {
  const agentId = readName('agent_id', request.params.agent_id ?? '');
  if (!agentId.ok) return agentId;
  const { reply } = await link.ask({ type: 'topology-lineage', agentId: agentId.value, ...listing });
  if (!reply.ok) return reply;
  const lineages = reply.value.lineages.map(({ agent, ancestors, descendants, isCut }) => ({
    agent: agentView(agent),
    ancestors: ancestors.map(agentView),
    descendants: descendants.map((below) => Object.assign(agentView(below.agent), { depth: below.depth })),
    truncated: isCut,
  }));
  return ok({ status: 200, body: { lineages, ...cursorView(reply.value) } });
}

export type TopologyRouteOptions = {
  /** How long a finished operation stays among the counted ones. */ readonly opsTtlSecs: number;
};

const stats =
  ({ opsTtlSecs }: TopologyRouteOptions) =>
  async (listing: Listing, link: Link): Promise<HttpReply> => {
    const { reply } = await link.ask({ type: 'topology-stats', ...listing });
    if (!reply.ok) return reply;
    const { agentsSeen, ops, groups } = reply.value;
    return ok({
      status: 200,
      body: {
        ...countsView(reply.value),
        agents_seen: agentsSeen,
        active_ops: activeOps(ops),
        ops,
        ops_ttl_secs: opsTtlSecs,
        groups: groups.map((group) => (group.teamId === undefined ? groupView(group) : teamView(group))),
        ...cursorView(reply.value),
      },
    });
  };

const activeOps = ({ pending, running, paused }: GroupStats['ops']): number => pending + running + paused;

const groupView = ({ orgId, agentCount, agentsSeen, ops }: GroupStats) => ({
  org_id: orgId,
  agent_count: agentCount,
  agents_seen: agentsSeen,
  active_ops: activeOps(ops),
  ops,
});

const teamView = (group: GroupStats) => ({ team_id: group.teamId, ...groupView(group) });

type NodeView = ReturnType<typeof agentView> & { readonly children: readonly NodeView[]; readonly truncated: boolean };

const nodeView = ({ agent, children, isCut }: TreeNode): NodeView =>
  Object.assign(agentView(agent), { children: children.map(nodeView), truncated: isCut });

/** Roots come org by org, but those of one team are not always neighbours. */
function orgsOf(roots: readonly TreeNode[]) {
  return [...groupBy(roots, ({ agent }) => agent.identity.orgId)].map(([org_id, ofOrg]) => ({
    org_id,
    teams: [...groupBy(ofOrg, ({ agent }) => agent.identity.teamId)].map(([team_id, agents]) => ({
      team_id,
      agents: agents.map(nodeView),
    })),
  }));
}

function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) append(groups, nameOf(item), item);
  return groups;
}

const listing = (
  path: string,
  summary: string,
  answer: AnswerShape,
  list: Parameters<typeof withListing>[1],
): Route => ({
  method: 'get',
  path: `/api/v1/topology/${path}`,
  access: { scope: 'read' },
  isQueued: true,
  summary,
  answers: { 200: answer },
  ...withListing([], list),
});

export const topologyRoutes = (options: TopologyRouteOptions): readonly Route[] => [
  listing('overview', 'Counts orgs, teams and agents, and lists the agents', topologyOverview, overview),
  listing('tree', 'Shows agents in a tree, below their org, team and parent', topologyTree, tree),
  listing('stats', 'Counts operations and agents per org, or per team of one org', topologyStats, stats(options)),
  listing('team/:team_id', 'Shows the teams of this name and their agents', topologyTeam, team),
  listing('lineage/:agent_id', 'Shows ancestors and descendants of the agents of this name', topologyLineage, lineage),
];
