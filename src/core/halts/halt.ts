/** A halt: a stop that an operator has put in force for a scope, until it is released (docs/spec.md, Halts). */
import { type AgentIdentity, agentKeyOf } from '../base/ids.ts';
import type { OpPlace } from '../ops/ops.ts';
import { covers, formatPolicyScope, type PolicyScope, parsePolicyScope, SCOPE_FORMS } from '../policy/scope.ts';

export const HALT_MODES = ['terminate', 'pause'] as const;
export type HaltMode = (typeof HALT_MODES)[number];

/** As a policy's scope, or an agent with all that it started, and that those started. */
export type HaltScope =
  | PolicyScope
  | { readonly tier: 'lineage'; readonly orgId: string; readonly teamId: string; readonly agentId: string };

export const HALT_SCOPE_FORMS = SCOPE_FORMS.replace(' or ', ', ').concat(' or lineage:<org>/<team>/<agent>');

/** Plain data, as it is stored. Times are milliseconds since the Unix epoch. */
export type Halt = {
  readonly id: string;
  /** As `formatHaltScope` writes it. */
  readonly scope: string;
  readonly mode: HaltMode;
  /** Globs, as in the rules of a policy. */
  readonly actions: readonly string[];
  readonly reason: string;
  /** `key:<id>` or `account:<id>`. */
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly released: HaltRelease | undefined;
};

export type HaltRelease = { readonly atMs: number; readonly by: string; readonly reason: string };

export const MAX_HALT_REASON = 1_000;
export const MAX_HALT_ACTIONS = 100;

/** Undefined when the text has none of the HALT_SCOPE_FORMS. Nobody it names needs to be registered. */
export function parseHaltScope(text: string): HaltScope | undefined {
  if (!text.startsWith('lineage:')) return parsePolicyScope(text);
  const agent = parsePolicyScope(`agent:${text.slice('lineage:'.length)}`);
  return agent?.tier === 'agent' ? { ...agent, tier: 'lineage' } : undefined;
}

export const formatHaltScope = (scope: HaltScope): string =>
  scope.tier === 'lineage' ? `lineage:${agentKeyOf(scope)}` : formatPolicyScope(scope);

/** The org that a halt is about; null: all of them. */
export const orgOfScope = (scope: HaltScope): string | null => (scope.tier === 'global' ? null : scope.orgId);

/** Whether the scope names the agent itself; of a lineage, only its first agent. */
export const namesAgent = (scope: HaltScope, agent: AgentIdentity): boolean =>
  covers(scope.tier === 'lineage' ? { ...scope, tier: 'agent' } : scope, agent);

/** The place at which the enforcement of a halt continues. */
export type EnforcementPlace = { readonly slot: number } | { readonly place: OpPlace };
