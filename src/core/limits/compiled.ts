/** The limits of a set of documents as they run, and which of them reach an agent. */
import type { AgentIdentity } from '../base/ids.ts';
import type { PolicyDocument } from '../policy/document.ts';
import { compilePatterns, type Patterns } from '../policy/rule.ts';
import { type PolicyScope, pathOf } from '../policy/scope.ts';
import type { Limit } from './limit.ts';

export type CompiledLimit = {
  readonly limit: Limit;
  readonly policy: string;
  readonly scope: PolicyScope;
  readonly actions: Patterns;
  readonly resources: Patterns;
  /** Whether it counts whatever is done. */
  readonly isOfAll: boolean;
};

const isAll = (globs: readonly string[]): boolean => globs.includes('*');

export const compileLimits = ({ name, scope, limits }: PolicyDocument): readonly CompiledLimit[] =>
  limits.map((limit) => ({
    limit,
    policy: name,
    scope,
    actions: compilePatterns(limit.actions),
    resources: compilePatterns(limit.resources),
    isOfAll: isAll(limit.actions) && isAll(limit.resources),
  }));

type Scope<T> = { reaching: readonly T[]; readonly within: Map<string, Scope<T>> };

/** Limits by the scopes that they are for. */
export class LimitIndex<T> {
  readonly #global: Scope<T> = { reaching: [], within: new Map() };

  /** In the order of the cascade: from global to agent, and as written. */
  constructor(all: readonly { readonly scope: PolicyScope; readonly item: T }[]) {
    for (const { scope, item } of all) {
      let at = this.#global;
      for (const name of pathOf(scope)) {
        const inner: Scope<T> = at.within.get(name) ?? { reaching: at.reaching, within: new Map() };
        at.within.set(name, inner);
        at = inner;
      }
      at.reaching = [...at.reaching, item];
    }
  }

  /** In the order in which they are decided. */
  reaching({ orgId, teamId, agentId }: AgentIdentity): readonly T[] {
    const org = this.#global.within.get(orgId);
    if (org === undefined) return this.#global.reaching;
    const team = org.within.get(teamId);
    if (team === undefined) return org.reaching;
    return (team.within.get(agentId) ?? team).reaching;
  }
}
