/** The part of the tree that is looked for: what fits, with those above it. Pure. */
import type { TreeNode, TreeOrg } from '../../base/api-types.ts';

function keep(nodes: readonly TreeNode[], part: string): TreeNode[] {
  return nodes.flatMap((node) => {
    const children = keep(node.children, part);
    const fits = node.agent_id.toLowerCase().includes(part);
    if (fits) return [node];
    return children.length > 0 ? [{ ...node, children }] : [];
  });
}

export function filterTree(orgs: readonly TreeOrg[], team: string, agent: string): readonly TreeOrg[] {
  const [teamPart, agentPart] = [team.trim().toLowerCase(), agent.trim().toLowerCase()];
  if (teamPart === '' && agentPart === '') return orgs;
  return orgs.flatMap((org) => {
    const teams = org.teams
      .filter(({ team_id }) => team_id.toLowerCase().includes(teamPart))
      .map((each) => ({ ...each, agents: keep(each.agents as readonly TreeNode[], agentPart) }))
      .filter(({ agents }) => agents.length > 0);
    return teams.length === 0 ? [] : [{ ...org, teams } as TreeOrg];
  });
}
