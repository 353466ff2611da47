import { type AgentIdentity, isName, isOrgName } from '../base/ids.ts';

/**
 * Whom a policy document governs (docs/spec.md, Policy). The tiers are those of budgets, in the order of the
 * cascade.
 */
export type PolicyScope =
  | { readonly tier: 'global' }
  | { readonly tier: 'org'; readonly orgId: string }
  | { readonly tier: 'team'; readonly orgId: string; readonly teamId: string }
  | { readonly tier: 'agent'; readonly orgId: string; readonly teamId: string; readonly agentId: string };

export const SCOPE_FORMS = 'global, org:<id>, team:<org>/<team> or agent:<org>/<team>/<agent>';

/** Undefined when the text has none of the SCOPE_FORMS, or holds what is no name. */
export function parsePolicyScope(text: string): PolicyScope | undefined {
  if (text === 'global') return { tier: 'global' };
  const colon = text.indexOf(':');
  if (colon === -1) return undefined;
  const tier = text.slice(0, colon);
  const names = text.slice(colon + 1).split('/');
  const [orgId = '', teamId = '', agentId = ''] = names;
  if (!isOrgName(orgId) || !names.every(isName)) return undefined;
  if (tier === 'org' && names.length === 1) return { tier, orgId };
  if (tier === 'team' && names.length === 2) return { tier, orgId, teamId };
  if (tier === 'agent' && names.length === 3) return { tier, orgId, teamId, agentId };
  return undefined;
}

export function formatPolicyScope(scope: PolicyScope): string {
  switch (scope.tier) {
    case 'global':
      return 'global';
    case 'org':
      return `org:${scope.orgId}`;
    case 'team':
      return `team:${scope.orgId}/${scope.teamId}`;
    case 'agent':
      return `agent:${scope.orgId}/${scope.teamId}/${scope.agentId}`;
  }
}

/** The names from the org down; none are everybody's. */
export function pathOf(scope: PolicyScope): readonly string[] {
  switch (scope.tier) {
    case 'global':
      return [];
    case 'org':
      return [scope.orgId];
    case 'team':
      return [scope.orgId, scope.teamId];
    case 'agent':
      return [scope.orgId, scope.teamId, scope.agentId];
  }
}

/** True when the scope reaches the agent. An agent without an org is reached by global documents only. */
export function covers(scope: PolicyScope, agent: AgentIdentity): boolean {
  switch (scope.tier) {
    case 'global':
      return true;
    case 'org':
      return scope.orgId === agent.orgId;
    case 'team':
      return scope.orgId === agent.orgId && scope.teamId === agent.teamId;
    case 'agent':
      return scope.orgId === agent.orgId && scope.teamId === agent.teamId && scope.agentId === agent.agentId;
  }
}
