import type { AgentEntry, AgentRegistry } from './agents.ts';
import type { Voucher } from './commands.ts';
import type { AgentIdentity } from './ids.ts';
import { seesOrg } from './scope.ts';

/** Whom a request speaks for, or why it speaks for nobody (contract: gRPC, rule 1). */
export type Identified =
  | { readonly kind: 'agent'; readonly entry: AgentEntry; readonly actor: string }
  | { readonly kind: 'no-credential' }
  | { readonly kind: 'unknown-credential' }
  /** The token is another agent's (spec: Errors). */
  | { readonly kind: 'impersonation'; readonly owner: AgentEntry }
  | {
      readonly kind: 'org-out-of-reach';
      readonly actor: string /** Of the credential, which is bound to it. */;
      readonly orgId: string | null;
    };

/** The agent that a request speaks for; `actor` vouches for it: the agent itself, or the bearer that acts for it. */
export type Speaker = Extract<Identified, { kind: 'agent' }>;

const NO_CREDENTIAL: Identified = { kind: 'no-credential' };
const UNKNOWN_CREDENTIAL: Identified = { kind: 'unknown-credential' };

/** Checks the claimed identity against the voucher. Changes nothing: a name that is claimed here is not kept. */
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

/** The message for a refused identity. It reveals nothing beyond what the caller sent. */
export const REFUSAL: Readonly<Record<Exclude<Identified['kind'], 'agent'>, string>> = {
  'no-credential': 'no credential token presented; register the agent and send its token',
  'unknown-credential': 'the credential token is not registered; register the agent again to get a new one',
  impersonation: 'the credential token is registered to a different agent',
  'org-out-of-reach': 'the credential has no access to the org of the claimed agent',
};
