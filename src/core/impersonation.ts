import type { AgentEntry } from './agents.ts';
import type { Effect } from './effects.ts';
import { REFUSAL } from './identity.ts';
import type { AgentIdentity, OpId } from './ids.ts';

/** The identity that a refused caller claimed, as payloads of entries and events have it. */
export const claimOf = ({ orgId, teamId, agentId }: AgentIdentity) => ({
  claimed_org_id: orgId === '' ? null : orgId,
  claimed_team_id: teamId,
  claimed_agent_id: agentId,
});

export type Attempt = {
  /** The owner of the presented token. */
  readonly owner: AgentEntry;
  readonly claimed: AgentIdentity;
  /** The action of a check; the name of the method for any other call. */
  readonly action: string;
  readonly opId: OpId | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
};

/**
 * What is put on record when a token is presented for an agent it does not belong to (spec: Audit event).
 *
 * Recorded under the org of the token's owner, which should know of the misuse, and not under the claimed org, which
 * must not learn about another org's agents and credentials.
 */
export function effectsOfImpersonation({ owner, claimed, action, opId, payload }: Attempt): Effect[] {
  const reason = REFUSAL.impersonation;
  return [
    {
      kind: 'audit',
      draft: {
        eventType: 'A2AImpersonationAttempted',
        lineage: owner.identity,
        actor: owner.actor,
        opId,
        decision: 'deny',
        reason,
        payload: { ...payload, ...claimOf(claimed) },
      },
    },
    { kind: 'violation', agent: owner.identity, reason, claimed, action },
  ];
}
