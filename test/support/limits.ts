/** A governor with limits in force, and short ways to ask it. */
import type { AgentIdentity } from '../../src/core/base/ids.ts';
import type { CheckAnswer, CheckCommand } from '../../src/core/commands.ts';
import type { Governor, GovernorOptions } from '../../src/core/governor.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../src/core/policy/policy.ts';
import { CRAWLER, checkOf, openGovernor, SIBLING, STRANGER } from './governor.ts';

/** All is allowed, within these limits, given as in a document. */
export function limitedPolicies(limits: readonly object[], scope = 'global'): PolicySet {
  const rules = [{ id: 'all', effect: 'allow' }];
  const documents = [
    { name: 'base', scope: 'global', rules },
    { name: 'limited', scope, limits },
  ].map((raw) => {
    const { document, problems } = parsePolicyDocument(raw, 'test.yaml');
    if (document === undefined || problems.length > 0) throw new Error(JSON.stringify(problems));
    return document;
  });
  const compiled = compilePolicies(documents);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

/** Milliseconds since the Unix epoch. */
export const START_MS = Date.parse('2026-11-04T12:00:00Z');

export function openLimited(
  limits: readonly object[],
  given: Partial<GovernorOptions> = {},
  agents: readonly AgentIdentity[] = [CRAWLER, SIBLING, STRANGER],
): Governor {
  const policies = limitedPolicies(limits);
  const governor = openGovernor({ agents, policies, ...given });
  governor.limitsInForce = policies.limits;
  return governor;
}

export function ask(
  governor: Governor,
  op: string,
  nowMs = START_MS,
  fields: Partial<CheckCommand> = {},
  agent: AgentIdentity = CRAWLER,
): CheckAnswer {
  const { reply } = governor.apply<'check'>(checkOf(agent, op, fields), nowMs);
  if (!reply.ok) throw new Error(reply.fault.kind);
  return reply.value;
}

/** The decisions about so many new operations, one after the other, of the trace `t`. */
export const askTimes = (governor: Governor, count: number, nowMs = START_MS, from = 0): string =>
  Array.from({ length: count }, (_, nth) => ask(governor, `t:s${from + nth}-${nowMs}`, nowMs).decision).join(' ');
