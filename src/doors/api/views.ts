import type { AgentView } from '../../core/agents/agent-view.ts';
import type { AgentIdentity } from '../../core/base/ids.ts';
import type { Page } from '../../core/base/page.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { OpView } from '../../core/ops/op-view.ts';
import { aboutView } from '../shared/about-view.ts';

/** Null for what has not happened yet, or never will. */
export const rfc3339OrNull = (ms: number | null | undefined): string | null => (ms == null ? null : rfc3339(ms));

/** The cursor of the next page; null on the last one (docs/spec.md, Lists and times). */
export const cursorView = ({ next }: Pick<Page<unknown>, 'next'>) => ({ next_cursor: next ?? null });

/** A page of a listing: its items under `name`, and the cursor of the next page. */
export const pageView = <T>(name: string, page: Page<T>, view: (item: T) => object) => ({
  [name]: page.items.map(view),
  ...cursorView(page),
});

export const identityView = ({ orgId, teamId, agentId }: AgentIdentity) => ({
  org_id: orgId,
  team_id: teamId,
  agent_id: agentId,
});

/** `home`: that of this gateway, if it is one of a cluster. */
export const opView = (op: OpView, home: string | undefined) => ({
  op_id: op.opId,
  ...(home !== undefined && { op_home: op.home ?? home }),
  state: op.state,
  registered_at: rfc3339(op.registeredAtMs),
  updated_at: rfc3339(op.updatedAtMs),
  agent: identityView(op.agent),
  ...aboutView(op),
  acknowledged_at: rfc3339OrNull(op.acknowledgedAtMs),
});

export const agentView = ({ identity, parent, registeredAtMs, lastSeenMs, activeOps }: AgentView) => ({
  org_id: identity.orgId,
  team_id: identity.teamId,
  agent_id: identity.agentId,
  parent: parent ?? null,
  registered_at: rfc3339(registeredAtMs),
  last_seen_at: rfc3339OrNull(lastSeenMs),
  active_ops: activeOps,
});
