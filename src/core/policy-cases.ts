/** The unit tests of a policy author: checks with the decision each should get, run against a set of policies. */
import { parseAgentKey, type AgentIdentity } from './ids.ts';
import { isMapping, unknownKey, type Mapping } from './mapping.ts';
import { MAX_COST_USD, usdToMicro } from './money.ts';
import { EFFECTS, type DocumentProblem, type Effect, type PolicyPath } from './policy-document.ts';
import type { CheckSubject } from './policy-condition.ts';
import type { PolicyDecision } from './policy-rule.ts';
import type { PolicySet } from './policy.ts';
import { fail, ok, type Result } from './result.ts';

export type PolicyCase = {
  readonly name: string;
  readonly subject: CheckSubject;
  readonly expect: Effect;
  /** The id of the rule that must decide; undefined: any. */
  readonly rule: string | undefined;
};

export type CaseOutcome = {
  readonly name: string;
  readonly passed: boolean;
  readonly expected: { readonly kind: Effect; readonly ruleId: string | undefined };
  readonly actual: PolicyDecision;
  /** What differs, in one sentence; undefined when nothing does. */
  readonly difference: string | undefined;
};

const CASE_KEYS: readonly string[] = ['name', 'agent', 'action', 'resource', 'attributes', 'caller', 'estimated_cost_usd', 'expect', 'rule'];

/** Reads `{ cases: [{ name, agent: acme/search/a1, action, resource, attributes, expect: allow, rule: web-only }] }`. */
export function parsePolicyCases(raw: unknown): Result<readonly PolicyCase[], readonly DocumentProblem[]> {
  if (!isMapping(raw) || !Array.isArray(raw.cases)) return fail([{ path: [], problem: 'policy cases are a mapping with one key, cases, which holds a list' }]);
  const reader = new CaseReader();
  for (const key of Object.keys(raw)) if (key !== 'cases') reader.refuse([key], 'unknown key; the only key here is cases', true);
  const cases = raw.cases.map((each: unknown, index) => reader.read(each, ['cases', index]));
  if (reader.problems.length > 0) return fail(reader.problems);
  return ok(cases.filter((each) => each !== undefined));
}

class CaseReader {
  readonly problems: DocumentProblem[] = [];

  refuse(path: PolicyPath, problem: string, onKey = false): undefined {
    this.problems.push(onKey ? { path, problem, onKey } : { path, problem });
    return undefined;
  }

  read(raw: unknown, path: PolicyPath): PolicyCase | undefined {
    if (!isMapping(raw)) return this.refuse(path, `a case is a mapping with the keys ${CASE_KEYS.join(', ')}`);
    for (const key of Object.keys(raw)) if (!CASE_KEYS.includes(key)) this.refuse([...path, key], unknownKey(key, CASE_KEYS), true);
    const action = this.#text(raw, 'action', path);
    const resource = this.#resource(raw, path);
    const agent = this.#agent(raw, 'agent', path) ?? this.#absent(raw, 'agent', path);
    const expect = EFFECTS.find((effect) => effect === raw.expect) ?? this.refuse([...path, 'expect'], 'must be allow or deny');
    const rule = raw.rule === undefined ? undefined : this.#text(raw, 'rule', path);
    const subject = { attributes: this.#attributes(raw, path), caller: this.#agent(raw, 'caller', path), estimatedCostMicroUsd: this.#cost(raw, path) };
    if (action === undefined || resource === undefined || agent === undefined || expect === undefined) return undefined;
    const name = raw.name === undefined ? wantedOf({ action, resource }) : this.#text(raw, 'name', path);
    return name === undefined ? undefined : { name, subject: { agent, action, resource, ...subject }, expect, rule };
  }

  #text(raw: Mapping, key: string, path: PolicyPath): string | undefined {
    const value = raw[key];
    if (typeof value === 'string' && value !== '') return value;
    return value === undefined ? this.#absent(raw, key, path) : this.refuse([...path, key], 'must be a text');
  }

  #resource(raw: Mapping, path: PolicyPath): string | undefined {
    const { resource } = raw;
    if (typeof resource === 'string') return resource;
    return resource === undefined ? this.#absent(raw, 'resource', path) : this.refuse([...path, 'resource'], 'must be a text, which may be empty');
  }

  #absent(raw: Mapping, key: string, path: PolicyPath): undefined {
    return raw[key] === undefined ? this.refuse(path, `${key} is missing`) : undefined;
  }

  #agent(raw: Mapping, key: 'agent' | 'caller', path: PolicyPath): AgentIdentity | undefined {
    const value = raw[key];
    if (value === undefined) return undefined;
    const agent = typeof value === 'string' ? parseAgentKey(value) : undefined;
    return agent ?? this.refuse([...path, key], 'must be <org>/<team>/<agent>, or /<team>/<agent> for one without an org');
  }

  #attributes({ attributes }: Mapping, path: PolicyPath): Mapping | undefined {
    return attributes === undefined || isMapping(attributes) ? attributes : this.refuse([...path, 'attributes'], 'must be a mapping');
  }

  #cost({ estimated_cost_usd: usd = 0 }: Mapping, path: PolicyPath): number {
    const microUsd = typeof usd === 'number' ? usdToMicro(usd) : undefined;
    if (microUsd === undefined) this.refuse([...path, 'estimated_cost_usd'], `must be an amount in US dollars from 0 to ${MAX_COST_USD}`);
    return microUsd ?? 0;
  }
}

/** `tool.call on web_search`; some actions have no resource. */
export const wantedOf = ({ action, resource }: Pick<CheckSubject, 'action' | 'resource'>): string => (resource === '' ? action : `${action} on ${resource}`);

export const runPolicyCases = (policies: PolicySet, cases: readonly PolicyCase[]): readonly CaseOutcome[] =>
  cases.map(({ name, subject, expect, rule }) => {
    const actual = policies.decide(subject);
    const difference = differenceOf(expect, rule, actual);
    return { name, passed: difference === undefined, expected: { kind: expect, ruleId: rule }, actual, difference };
  });

function differenceOf(expect: Effect, rule: string | undefined, { kind, ruleId, reason }: PolicyDecision): string | undefined {
  if (kind !== expect) return `expected ${expect}, got ${kind}: ${reason}`;
  if (rule !== undefined && ruleId !== rule) return `expected ${expect} by rule ${rule}, got it ${ruleId === undefined ? 'by no rule' : `by rule ${ruleId}`}: ${reason}`;
  return undefined;
}
