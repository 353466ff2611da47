/** The gateways of a cluster, as operators see and forget them. */

import { type AuditDraft, NO_LINEAGE } from '../core/audit/audit.ts';
import { microToUsd } from '../core/base/money.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { Member, MemberStore, PolicyText, Unconfirmed } from '../ports/cluster.ts';
import type { AuditLog } from '../ports/ports.ts';
import type { UseCase } from '../ports/use-case.ts';
import type { Reloaded } from './policies.ts';

export type ListedMember = Member & { readonly strandedMicroUsd: number };

/** Whom `svc cluster forget` is about; what was granted and not spent is charged unless `freesUnspent`. */
export type Forgetting = { readonly name: string; readonly freesUnspent: boolean };

/** Files of documents, or the version of a set that was published before. */
export type PublishedSet = { readonly texts: readonly PolicyText[] } | { readonly version: string };

/** The policies of all gateways. */
export type PolicyPublisher = {
  publish(texts: readonly PolicyText[], actor: string): Promise<Result<Reloaded, Fault> & Unconfirmed>;
  publishAgain(version: string, actor: string): Promise<Result<Reloaded, Fault> & Unconfirmed>;
};

export type ClusterUseCases = {
  /** Faults: `not_found` where the gateway is alone. */
  readonly listMembers: (asked: {
    readonly principal: Principal;
  }) => Promise<Result<{ readonly members: readonly ListedMember[] }, Fault>>;
  /** Puts documents in force at every gateway, or a set again that was published before. */
  readonly publishPolicies: UseCase<{ readonly principal: Principal; readonly set: PublishedSet }, Reloaded>;
  readonly forgetMember: (
    asked: Forgetting & { readonly principal: Principal },
  ) => Promise<Result<{ readonly microUsd: number }, Fault>>;
};

const NO_CLUSTER = fail({ kind: 'not_found', what: 'cluster' } as const);

export const withoutCluster: ClusterUseCases = {
  listMembers: async () => NO_CLUSTER,
  forgetMember: async () => NO_CLUSTER,
  publishPolicies: async () => NO_CLUSTER,
};

export const createClusterUseCases = (
  store: Pick<MemberStore, 'list' | 'forget'>,
  policies: PolicyPublisher,
  audit: AuditLog,
): ClusterUseCases => ({
  publishPolicies: async ({ principal, set }) => {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const { subject } = principal;
    return 'texts' in set ? policies.publish(set.texts, subject) : policies.publishAgain(set.version, subject);
  },
  // They serve every org together.
  listMembers: async ({ principal }) => {
    if (principal.orgId !== null) return fail({ kind: 'org_forbidden', orgId: undefined });
    const listed = await store.list();
    if (!listed.ok) return listed;
    const { members, stranded } = listed.value;
    return ok({ members: members.map((member) => ({ ...member, strandedMicroUsd: stranded.get(member.run) ?? 0 })) });
  },
  forgetMember: async ({ principal, name, freesUnspent }) => {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const forgotten = await store.forget(name, freesUnspent ? 'free' : 'charge');
    if (!forgotten.ok) return forgotten;
    // Afterwards: what it was worth is known only then, and forgetting twice changes nothing.
    const recorded = await audit.record(entryOf(principal, name, freesUnspent, forgotten.value.microUsd));
    return recorded.ok ? forgotten : recorded;
  },
});

const entryOf = (principal: Principal, gateway: string, isFreed: boolean, microUsd: number): AuditDraft => ({
  eventType: 'GatewayForgotten',
  lineage: NO_LINEAGE,
  actor: principal.subject,
  payload: { gateway, [isFreed ? 'freed_usd' : 'charged_usd']: microToUsd(microUsd) },
});
