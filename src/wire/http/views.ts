/** The wire forms of what the governor answers: snake_case names and RFC 3339 times. */
import type { AgentView, OpView } from '../../core/commands.ts';
import type { AgentIdentity } from '../../core/ids.ts';
import { rfc3339 } from './body.ts';

const identityView = ({ orgId, teamId, agentId }: AgentIdentity) => ({ org_id: orgId, team_id: teamId, agent_id: agentId });

export const opView = ({ opId, state, registeredAtMs, updatedAtMs, agent, acknowledgedAtMs }: OpView) => ({
  op_id: opId,
  state,
  registered_at: rfc3339(registeredAtMs),
  updated_at: rfc3339(updatedAtMs),
  agent: identityView(agent),
  acknowledged_at: acknowledgedAtMs === undefined ? null : rfc3339(acknowledgedAtMs),
});

export const agentView = ({ identity, parent, registeredAtMs, lastSeenMs, activeOps }: AgentView) => ({
  ...identityView(identity),
  parent: parent ?? null,
  registered_at: rfc3339(registeredAtMs),
  last_seen_at: lastSeenMs === undefined ? null : rfc3339(lastSeenMs),
  active_ops: activeOps,
});
