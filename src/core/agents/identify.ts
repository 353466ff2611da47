import type { AgentIdentity, OpId } from '../base/ids.ts';
import type { Effect } from '../effects.ts';
import type { Voucher } from '../identity/access.ts';
import { seesOrg } from '../identity/roles.ts';
import type { AgentEntry } from './agent-entry.ts';
import type { AgentRegistry } from './agents.ts';
import { REFUSAL } from './refusal.ts';

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
 * Records that a token was presented for an agent it does not belong to (docs/spec.md, Identity).
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
        cause: 'credential',
        payload: { ...payload, ...claimOf(claimed) },
      },
    },
    { kind: 'violation', agent: owner.identity, reason, claimed, action },
  ];
}

/** Whom a request speaks for, or why it speaks for nobody (docs/spec.md, Checks 1). */
export type Identified =
  | { readonly kind: 'agent'; readonly entry: AgentEntry; readonly actor: string }
  | { readonly kind: 'no-credential' }
  | { readonly kind: 'unknown-credential' }
  /** The token is another agent's (docs/spec.md, Identity). */
  | { readonly kind: 'impersonation'; readonly owner: AgentEntry }
  | {
      readonly kind: 'org-out-of-reach';
      readonly actor: string;
      /** The org that the credential is bound to. */
      readonly orgId: string | null;
    };

/** The agent that a request speaks for; `actor` is authenticated: the agent itself, or the bearer that acts for it. */
export type Speaker = Extract<Identified, { kind: 'agent' }>;

const NO_CREDENTIAL: Identified = { kind: 'no-credential' };
const UNKNOWN_CREDENTIAL: Identified = { kind: 'unknown-credential' };

/** Checks the claimed identity against the credential. Changes nothing: a name that is claimed here is not kept. */
export function identify(
  agents: AgentRegistry,
  claimed: AgentIdentity,
  { credential, principal }: Voucher,
): Identified {
  if (credential !== undefined) {
    const owner = agents.ownerOf(credential);
    if (owner === undefined) return UNKNOWN_CREDENTIAL;
    return isSame(owner.identity, claimed)
      ? { kind: 'agent', entry: owner, actor: owner.actor }
      : { kind: 'impersonation', owner };
  }
  if (principal === undefined) return NO_CREDENTIAL;
  if (!seesOrg(principal, claimed.orgId))
    return { kind: 'org-out-of-reach', actor: principal.subject, orgId: principal.orgId };
  return { kind: 'agent', entry: agents.lookUp(claimed), actor: principal.subject };
}

const isSame = (one: AgentIdentity, other: AgentIdentity): boolean =>
  one.agentId === other.agentId && one.teamId === other.teamId && one.orgId === other.orgId;
