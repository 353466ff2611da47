/** The unit tests of a policy author: checks with the decision each should get, run against a set of policies. */
import { type AgentIdentity, parseAgentKey } from '../base/ids.ts';
import { type DocumentProblem, isMapping, type Mapping, MappingReader } from '../base/mapping.ts';
import { MAX_COST_USD, usdToMicro } from '../base/money.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { type AssumedUse, limitOver } from '../limits/assumed.ts';
import { type AssumedHalt, haltOver, readHalts } from './assumed-halts.ts';
import { EFFECT_FORMS, RULE_EFFECTS, type RuleEffect } from './effect.ts';
import type { PolicySet } from './policy.ts';
import type { PolicyDecision } from './rule.ts';

export type PolicyCase = {
  readonly name: string;
  readonly subject: CheckSubject;
  readonly expect: RuleEffect;
  /** The id of the rule that must decide; undefined: any. */
  readonly rule: string | undefined;
  /** The ids of all obligations that must come with the decision, in any order; undefined: any. */
  readonly obligations: readonly string[] | undefined;
  /** Why it must be denied; undefined: for any cause. */
  readonly cause: CaseCause | undefined;
  /** How much of limits is used so far, by their ids; undefined: nothing. */
  readonly used: AssumedUse | undefined;
  /** Halts that its document assumes. */
  readonly halts: readonly AssumedHalt[];
};

/** The causes of a deny that need no gateway. */
export const CASE_CAUSES = ['rule', 'no_rule', 'condition_error', 'halt', 'limit'] as const;
type CaseCause = (typeof CASE_CAUSES)[number];

export type CaseOutcome = {
  readonly name: string;
  readonly passed: boolean;
  readonly expected: { readonly kind: RuleEffect; readonly ruleId: string | undefined };
  readonly actual: PolicyDecision;
  /** The difference, in one sentence; undefined if there is none. */
  readonly difference: string | undefined;
};

/** In the order in which an author reads them. */
const KEY_OF = {
  name: 'name',
  agent: 'agent',
  action: 'action',
  resource: 'resource',
  attributes: 'attributes',
  caller: 'caller',
  estimatedCostMicroUsd: 'estimated_cost_usd',
  expect: 'expect',
  rule: 'rule',
  obligations: 'obligations',
  cause: 'cause',
  used: 'used',
} as const satisfies Record<Exclude<keyof PolicyCase, 'subject' | 'halts'> | keyof CheckSubject, string>;
export type CaseKey = (typeof KEY_OF)[keyof typeof KEY_OF];
const CASE_KEYS: readonly string[] = Object.values(KEY_OF);

/**
 * Reads `{ cases: [{ name, agent: acme/search/a1, action, resource, attributes, expect: allow, rule: web-only }] }`,
 * and the `halts` that are in force for all of them.
 */
export function parsePolicyCases(raw: unknown): Result<readonly PolicyCase[], readonly DocumentProblem[]> {
  if (!isMapping(raw) || !Array.isArray(raw.cases))
    return fail([{ path: [], problem: 'a policy test file must be a mapping with the key cases, that holds a list' }]);
  const problems: DocumentProblem[] = [];
  const file = new MappingReader(raw, [], problems);
  file.refuseKeysExcept(['cases', 'halts']);
  const halts = readHalts(file);
  const cases = raw.cases.map((each: unknown, index) => readCase(file, index, each, halts));
  if (problems.length > 0) return fail(problems);
  return ok(cases.filter((each) => each !== undefined));
}

function readCase(
  file: MappingReader,
  index: number,
  raw: unknown,
  halts: readonly AssumedHalt[],
): PolicyCase | undefined {
  const path = ['cases', index];
  if (!isMapping(raw))
    return file.note({ path, problem: `a case must be a mapping with the keys ${CASE_KEYS.join(', ')}` });
  const from = file.within(path, raw);
  from.refuseKeysExcept(CASE_KEYS);
  const action = readText(from, 'action');
  const resource = readResource(from);
  const agent = raw.agent === undefined ? from.missing('agent') : readAgent(from, 'agent');
  const expect =
    RULE_EFFECTS.find((effect) => effect === raw.expect) ?? from.refuse('expect', `must be ${EFFECT_FORMS}`);
  const rule = raw.rule === undefined ? undefined : readText(from, 'rule');
  const obligations = readIds(from);
  const cause = readCause(from, expect);
  const used = readUse(from);
  const subject = {
    attributes: readAttributes(from),
    caller: readAgent(from, 'caller'),
    estimatedCostMicroUsd: readCost(from),
  };
  if (action === undefined || resource === undefined || agent === undefined || expect === undefined) return undefined;
  const name = raw.name === undefined ? wantedOf({ action, resource }) : readText(from, 'name');
  return name === undefined
    ? undefined
    : { name, subject: { agent, action, resource, ...subject }, expect, rule, obligations, cause, used, halts };
}

function readText(from: MappingReader, key: string): string | undefined {
  const value = from.raw[key];
  if (value === undefined) return from.missing(key);
  return typeof value === 'string' && value !== '' ? value : from.refuse(key, 'must be a non-empty string');
}

function readCause(from: MappingReader, expect: RuleEffect | undefined): CaseCause | undefined {
  const { cause } = from.raw;
  if (cause === undefined) return undefined;
  if (expect !== undefined && expect !== 'deny') return from.refuse('cause', 'only a deny has a cause');
  return (
    CASE_CAUSES.find((known) => known === cause) ?? from.refuse('cause', `must be one of ${CASE_CAUSES.join(', ')}`)
  );
}

function readUse(from: MappingReader): AssumedUse | undefined {
  const { used } = from.raw;
  if (used === undefined) return undefined;
  return isMapping(used) && Object.values(used).every((each) => typeof each === 'number' && each >= 0)
    ? (used as AssumedUse)
    : from.refuse('used', 'must be a mapping of ids of limits to numbers: calls, US dollars or tokens used so far');
}

function readIds(from: MappingReader): readonly string[] | undefined {
  const { obligations } = from.raw;
  if (obligations === undefined) return undefined;
  return Array.isArray(obligations) && obligations.every((id) => typeof id === 'string' && id !== '')
    ? (obligations as readonly string[])
    : from.refuse('obligations', 'must be a list of ids of obligations, which may be empty');
}

function readResource(from: MappingReader): string | undefined {
  const { resource } = from.raw;
  if (resource === undefined) return from.missing('resource');
  return typeof resource === 'string' ? resource : from.refuse('resource', 'must be a string, which may be empty');
}

function readAgent(from: MappingReader, key: 'agent' | 'caller'): AgentIdentity | undefined {
  const value = from.raw[key];
  if (value === undefined) return undefined;
  const agent = typeof value === 'string' ? parseAgentKey(value) : undefined;
  return agent ?? from.refuse(key, 'must be <org>/<team>/<agent>, or /<team>/<agent> for an agent without an org');
}

function readAttributes(from: MappingReader): Mapping | undefined {
  const { attributes } = from.raw;
  return attributes === undefined || isMapping(attributes)
    ? attributes
    : from.refuse('attributes', 'must be a mapping');
}

function readCost(from: MappingReader): number {
  const { estimated_cost_usd: usd = 0 } = from.raw;
  const microUsd = typeof usd === 'number' ? usdToMicro(usd) : undefined;
  return (
    microUsd ?? from.refuse('estimated_cost_usd', `must be an amount in US dollars from 0 to ${MAX_COST_USD}`) ?? 0
  );
}

/** `tool.call on web_search`; some actions have no resource. */
export const wantedOf = ({ action, resource }: Pick<CheckSubject, 'action' | 'resource'>): string =>
  resource === '' ? action : `${action} on ${resource}`;

/** `halts` are in force beside those of each case. */
export const runPolicyCases = (
  policies: PolicySet,
  cases: readonly PolicyCase[],
  halts: readonly AssumedHalt[] = [],
): readonly CaseOutcome[] =>
  cases.map((each) => {
    const { name, subject, expect, rule } = each;
    const halted = haltOver([...each.halts, ...halts], subject);
    const actual: PolicyDecision =
      halted === undefined
        ? limited(policies, each)
        : { kind: 'deny', policy: undefined, ruleId: undefined, ...halted };
    const difference =
      differenceOf(expect, rule, actual) ??
      causeDiffers(each.cause, actual) ??
      obligationsDiffer(each.obligations, actual);
    return { name, passed: difference === undefined, expected: { kind: expect, ruleId: rule }, actual, difference };
  });

/** An action that needs an approval is asked first. */
function limited(policies: PolicySet, { subject, used }: PolicyCase): PolicyDecision {
  const decision = policies.decide(subject);
  return decision.kind === 'allow' ? (limitOver(policies.limits, subject, used ?? {}) ?? decision) : decision;
}

const causeDiffers = (expected: CaseCause | undefined, { cause, reason }: PolicyDecision): string | undefined =>
  expected === undefined || expected === cause
    ? undefined
    : `expected the cause ${expected}, got ${cause ?? 'none'}: ${reason}`;

function obligationsDiffer(
  expected: readonly string[] | undefined,
  { obligations = [] }: PolicyDecision,
): string | undefined {
  if (expected === undefined) return undefined;
  const wanted = [...expected].sort().join(', ');
  const got = obligations
    .map(({ id }) => id)
    .sort()
    .join(', ');
  return wanted === got ? undefined : `expected the obligations ${wanted || 'none'}, got ${got || 'none'}`;
}

function differenceOf(
  expect: RuleEffect,
  rule: string | undefined,
  { kind, ruleId, reason }: PolicyDecision,
): string | undefined {
  if (kind !== expect) return `expected ${expect}, got ${kind}: ${reason}`;
  if (rule !== undefined && ruleId !== rule)
    return `expected ${expect} by rule ${rule}, got ${kind} by ${ruleId === undefined ? 'no rule' : `rule ${ruleId}`}: ${reason}`;
  return undefined;
}
