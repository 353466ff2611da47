/**
 * The digest that binds an approval to the exact arguments of the check, as canonical JSON (docs/spec.md, Approvals).
 */
import { microToUsd } from '../base/money.ts';
import type { CheckSubject } from '../condition/condition.ts';

/** The lower-case hexadecimal SHA-256 of a text in UTF-8. Handed in, because the core has no cryptography. */
export type Sha256Hex = (text: string) => string;

type Bound = Pick<CheckSubject, 'agent' | 'action' | 'resource' | 'attributes' | 'estimatedCostMicroUsd'>;

/** The text whose hash is the digest. */
export function canonicalCheck({ agent, action, resource, attributes, estimatedCostMicroUsd }: Bound): string {
  return canonicalJson({
    action,
    agent: { agent_id: agent.agentId, org_id: agent.orgId, team_id: agent.teamId },
    attributes: attributes ?? {},
    estimated_cost_usd: microToUsd(estimatedCostMicroUsd ?? 0),
    resource,
  });
}

/**
 * RFC 8785: keys in the order of their UTF-16 units, no white space, and strings and numbers as ECMAScript writes them.
 * Takes what came from JSON or a Struct, whose readers refuse whole numbers that are not exact; a lone surrogate, which
 * has no UTF-8, is written as an escape, so that no two values have the same text.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const object = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(object).sort();
  return `{${keys.map((key) => `${canonicalJson(key)}:${canonicalJson(object[key])}`).join()}}`;
}
