/** The known agents that a halt covers: a mistyped name is pointed out (docs/spec.md, Halts). */
import type { AgentGroup } from '../agents/agent-entry.ts';
import type { AgentRegistry } from '../agents/agents.ts';
import { type AgentKey, agentKeyOf } from '../base/ids.ts';
import { nearest } from '../base/mapping.ts';
import type { HaltScope } from './halt.ts';

export type HaltMatch = {
  /** How many registered agents it covers. */
  readonly agents: number;
  /** If it covers no known agent: the scope with the most similar names, if there is one. */
  readonly nearest: string | undefined;
};

/** Names that are compared with the mistyped one: everybody else waits meanwhile. */
const MAX_COMPARED = 1_000;
/** Longer ones are compared with none. */
const MAX_LENGTH = 64;

export const matchOf = (registry: AgentRegistry, scope: HaltScope): HaltMatch => ({
  agents: registeredIn(registry, scope),
  nearest: isKnown(registry, scope) ? undefined : nearestTo(registry, scope),
});

/** Whether anybody in the scope is registered, or has operations. */
export function isKnown(registry: AgentRegistry, scope: HaltScope): boolean {
  switch (scope.tier) {
    case 'global':
      return true;
    case 'org':
      return registry.groups.orgs.get(scope.orgId) !== undefined;
    case 'team':
      return teamIn(registry, scope.orgId, scope.teamId) !== undefined;
    case 'agent':
    case 'lineage':
      return registry.get(agentKeyOf(scope)) !== undefined;
  }
}

function registeredIn(registry: AgentRegistry, scope: HaltScope): number {
  switch (scope.tier) {
    case 'global':
      return registry.registeredCount;
    case 'org':
      return registry.groups.orgs.get(scope.orgId)?.agents.size ?? 0;
    case 'team':
      return teamIn(registry, scope.orgId, scope.teamId)?.agents.size ?? 0;
    case 'agent':
      return registry.registrationOf(agentKeyOf(scope)) === undefined ? 0 : 1;
    case 'lineage':
      return lineageSize(registry, agentKeyOf(scope));
  }
}

function lineageSize(registry: AgentRegistry, first: AgentKey): number {
  const found = new Set(registry.registrationOf(first) === undefined ? [] : [first]);
  const parents = [first];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    for (const { key } of registry.childrenOf(parent)) {
      if (found.has(key)) continue;
      found.add(key);
      parents.push(key);
    }
  }
  return found.size;
}

const teamIn = ({ groups }: AgentRegistry, orgId: string, teamId: string): AgentGroup | undefined =>
  groups.orgs.get(orgId)?.teams.get(teamId);

/** Within the org, where that is known. */
function nearestTo(registry: AgentRegistry, scope: HaltScope): string | undefined {
  if (scope.tier === 'global') return undefined;
  const names = namesOf(scope);
  if (names.length > MAX_LENGTH) return undefined;
  const alike: string[] = [];
  for (const name of namesLike(registry, scope)) {
    if (Math.abs(name.length - names.length) <= names.length / 3 + 1) alike.push(name);
    if (alike.length === MAX_COMPARED) break;
  }
  const guess = nearest(names, alike);
  return guess === undefined ? undefined : `${scope.tier}:${guess}`;
}

function namesOf(scope: Exclude<HaltScope, { tier: 'global' }>): string {
  if (scope.tier === 'org') return scope.orgId;
  return scope.tier === 'team' ? `${scope.orgId}/${scope.teamId}` : agentKeyOf(scope);
}

/** Suggests scopes with similar names: orgs, teams or agents; those of its own org if there are any. */
function* namesLike(registry: AgentRegistry, scope: Exclude<HaltScope, { tier: 'global' }>): Iterable<string> {
  const { orgs } = registry.groups;
  const own = orgs.get(scope.orgId);
  if (scope.tier === 'agent' || scope.tier === 'lineage') {
    for (const { key } of own?.agents.after(0) ?? registry.registeredAfter(0)) yield key;
    return;
  }
  for (const org of own === undefined ? orgs.after(0) : [own]) {
    if (scope.tier === 'org' && org.orgId !== '') yield org.orgId;
    if (scope.tier === 'team')
      for (const { orgId, teamId = '' } of org.teams.after(0)) if (orgId !== '') yield `${orgId}/${teamId}`;
  }
}
