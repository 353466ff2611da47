/** Pages of registered agents. */

import { type AgentEntry, viewOfAgent } from '../agents/agent-entry.ts';
import type { AgentView } from '../agents/agent-view.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import type { Page } from '../base/page.ts';

/** How many agents one page may look at, so that the search for a rare team never delays the checks. */
const SCAN_AGENTS = 100_000;

type Wanted = {
  readonly orgId: string | undefined;
  readonly teamId: string | undefined;
  readonly agentId: string | undefined;
};

/**
 * Agents come in the order of registration, and the cursor is the number of the last one. Where a team is rare among
 * all orgs, a page may be short or even empty and still have a `next` to go on from.
 */
export function pageOfAgents(agents: AgentRegistry, wanted: Wanted, perPage: number, after: number): Page<AgentView> {
  const items: AgentView[] = [];
  let last = after;
  let seen = 0;
  for (const entry of agentsAfter(agents, wanted, after)) {
    const isMatch = wanted.teamId === undefined || entry.identity.teamId === wanted.teamId;
    if (seen === SCAN_AGENTS || (isMatch && items.length === perPage)) return { items, next: String(last) };
    if (isMatch) items.push(viewOfAgent(entry));
    last = entry.registration;
    seen += 1;
  }
  return { items, next: undefined };
}

function agentsAfter(agents: AgentRegistry, { orgId, teamId, agentId }: Wanted, after: number): Iterable<AgentEntry> {
  if (agentId !== undefined)
    return orgId === undefined ? agents.namedAfter(agentId, after) : agents.namedInOrgAfter(orgId, agentId, after);
  if (orgId === undefined) return agents.registeredAfter(after);
  const org = agents.groups.orgs.get(orgId);
  return (teamId === undefined ? org : org?.teams.get(teamId))?.agents.after(after) ?? [];
}
