/** Pages of registered agents. */
import { viewOfAgent, type AgentEntry, type AgentRegistry } from './agents.ts';
import type { AgentView, Page } from './commands.ts';

/** How many agents one page may look at, so that the search for a rare team never delays the checks. */
const SCAN_AGENTS = 100_000;

/**
 * Agents come in the order of registration, so the last one's number is where the next page starts. Where a team is rare
 * among all orgs a page may be short, even empty, and still have a `next` to go on from.
 */
export function pageOfAgents(agents: AgentRegistry, orgId: string | undefined, teamId: string | undefined, perPage: number, after: number): Page<AgentView> {
  const items: AgentView[] = [];
  let last = after;
  let seen = 0;
  for (const entry of agentsAfter(agents, orgId, teamId, after)) {
    const isMatch = teamId === undefined || entry.identity.teamId === teamId;
    if (seen === SCAN_AGENTS || (isMatch && items.length === perPage)) return { items, next: String(last) };
    if (isMatch) items.push(viewOfAgent(entry));
    last = entry.registration;
    seen += 1;
  }
  return { items, next: undefined };
}

function agentsAfter(agents: AgentRegistry, orgId: string | undefined, teamId: string | undefined, after: number): Iterable<AgentEntry> {
  if (orgId === undefined) return agents.registeredAfter(after);
  const org = agents.membersOf(orgId);
  return (teamId === undefined ? org?.agents : org?.teams.get(teamId))?.after(after) ?? [];
}
