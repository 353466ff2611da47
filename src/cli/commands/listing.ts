/** Helpers of the commands that list things. */

import { type AgentIdentity, isName, parseAgentKey } from '../../core/base/ids.ts';
import { usageError } from '../errors.ts';
import type { Invocation, Options } from '../invocation.ts';
import { Api, missingNote } from '../remote/api.ts';
import type { Query } from '../remote/http.ts';
import { note, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import type { Column, Row } from '../terminal/table.ts';

// Agents as the commands read and show them: `acme/search/crawler`, or `/search/crawler` for an agent without an org.

/** The name of an agent in an answer of the gateway; undefined when that is none. */
export function agentText(raw: unknown): string | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const { org_id: org, team_id: team, agent_id: agent } = raw as Row;
  return typeof agent === 'string'
    ? `${typeof org === 'string' ? org : ''}/${typeof team === 'string' ? team : ''}/${agent}`
    : undefined;
}

/** Throws a usage error when the text names no agent. */
export function parseAgent(text: string): AgentIdentity {
  const agent = parseAgentKey(text);
  if (agent !== undefined) return agent;
  const isShort = text.split('/').length === 2 && text.split('/').every(isName);
  throw usageError(
    'an agent must be <org>/<team>/<agent>, or /<team>/<agent> without an org',
    isShort ? `Did you mean /${text}?` : 'For example acme/search/crawler.',
  );
}

export const wireAgent = ({ orgId, teamId, agentId }: AgentIdentity) => ({
  org_id: orgId,
  team_id: teamId,
  agent_id: agentId,
});

export type AgentFilter = Readonly<Record<'org_id' | 'team_id' | 'agent_id', string | undefined>>;

/**
 * Parses --org, --team and --agent. --agent is an agent id, or a whole name as the listings show it; an org of '' is
 * none.
 */
export function agentFilter(options: Options): AgentFilter {
  const [org, team, agent] = ['org', 'team', 'agent'].map((name) => options.text(name));
  if (agent?.includes('/') !== true) return { org_id: org, team_id: team, agent_id: agent };
  const { orgId, teamId, agentId } = parseAgent(agent);
  if ((org ?? orgId) !== orgId || (team ?? teamId) !== teamId)
    throw usageError(`--agent ${printable(agent)} is not in this ${(org ?? orgId) === orgId ? 'team' : 'org'}`);
  return { org_id: orgId, team_id: teamId, agent_id: agentId };
}

const DEFAULT_LIMIT = 100;

export const limitOf = (options: Options): number => options.count('limit', '--limit', 1) ?? DEFAULT_LIMIT;

export const moreNote = (shown: number): string =>
  `There are more than ${shown === 1 ? 'this one' : `these ${shown}`}; raise --limit to see them.`;

type Listing = {
  readonly path: string;
  /** The field of the answer that holds the rows. */
  readonly key: string;
  readonly query?: Query;
  readonly columns: readonly Column[];
  /** A sentence for a listing without rows. */
  readonly none: string;
};

/** Shows at most `--limit` rows, and notes it when there are more. */
export async function showList(
  invocation: Invocation,
  { path, key, query = {}, columns, none }: Listing,
): Promise<void> {
  const { options, globals } = invocation;
  const api = await Api.of(invocation);
  const { rows, nextCursor, incomplete } = await api.list(path, key, { query, limit: limitOf(options) });
  await showTable(globals, { value: { [key]: rows, next_cursor: nextCursor }, columns, rows, none });
  if (nextCursor !== null) note(moreNote(rows.length));
  if (incomplete.length > 0) note(missingNote(incomplete));
}
