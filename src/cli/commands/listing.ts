/** What the commands that list things have in common. */
import { isName, parseAgentKey, type AgentIdentity } from '../../core/ids.ts';
import { usageError } from '../errors.ts';
import type { Options } from '../invocation.ts';
import type { Row } from '../table.ts';

const DEFAULT_LIMIT = 100;

export const limitOf = (options: Options): number => options.count('limit', '--limit', 1) ?? DEFAULT_LIMIT;

export const moreNote = (shown: number): string => `There are more than ${shown === 1 ? 'this one' : `these ${shown}`}: raise --limit to see them.`;

/** `acme/search/crawler`; `/search/crawler` for an agent without an org. */
export function agentText(raw: unknown): string | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const { org_id: org, team_id: team, agent_id: agent } = raw as Row;
  return typeof agent === 'string' ? `${typeof org === 'string' ? org : ''}/${typeof team === 'string' ? team : ''}/${agent}` : undefined;
}

/** Reads `acme/search/crawler`. */
export function parseAgent(text: string): AgentIdentity {
  const agent = parseAgentKey(text);
  if (agent !== undefined) return agent;
  const isShort = text.split('/').length === 2 && text.split('/').every(isName);
  throw usageError('an agent is <org>/<team>/<agent>, or /<team>/<agent> without an org', isShort ? `Did you mean /${text}?` : 'For example acme/search/crawler.');
}

export const wireAgent = ({ orgId, teamId, agentId }: AgentIdentity) => ({ org_id: orgId, team_id: teamId, agent_id: agentId });
