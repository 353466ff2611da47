/** A policy document as plain data, checked key by key. The adapter that parsed the YAML knows its lines and columns. */
import { isMapping, unknownKey, type Mapping } from './mapping.ts';
import { compileCondition, type Condition } from './policy-condition.ts';
import { MAX_GLOB_LENGTH } from './policy-glob.ts';
import { parsePolicyScope, SCOPE_FORMS, type PolicyScope } from './policy-scope.ts';
import { finish, type Steps } from './steps.ts';

export const EFFECTS = ['allow', 'deny'] as const;
export type Effect = (typeof EFFECTS)[number];

/** Its JSON is part of the version of the policies, so whatever a key says must be in it. */
export type Rule = {
  readonly id: string;
  /** Globs over the action; `['*']` when left out. */
  readonly actions: readonly string[];
  /** Globs over the resource; `['*']` when left out. */
  readonly resources: readonly string[];
  /** Undefined: always. */
  readonly when: Condition | undefined;
  readonly effect: Effect;
  readonly reason: string | undefined;
};

export type PolicyDocument = {
  readonly name: string;
  readonly scope: PolicyScope;
  readonly rules: readonly Rule[];
  /** The `budget:` section as written; undefined when there is none. */
  readonly budget: unknown;
  /** Where it was read from, for people: a file name. */
  readonly source: string;
};

/** A place inside a document: keys and indexes, such as `['rules', 2, 'when']`. The empty path is the document itself. */
export type PolicyPath = readonly (string | number)[];

/** A mistake of a document. `onKey`: the key is at fault rather than its value. `offset`: where in a condition, in characters. */
export type DocumentProblem = {
  readonly path: PolicyPath;
  readonly problem: string;
  readonly onKey?: boolean;
  readonly offset?: number;
};

const MAX_NAME_LENGTH = 128;
const MAX_REASON_LENGTH = 512;
const MAX_RULES = 10_000;

const DOCUMENT_KEYS = ['name', 'scope', 'rules', 'budget'] as const;
const RULE_KEYS = ['id', 'actions', 'resources', 'when', 'effect', 'reason'] as const;

type Problems = DocumentProblem[];

/** `document` is there if its name and scope could be read; rules that could not be are left out. Use it only without problems. */
export type ParsedDocument = { readonly document: PolicyDocument | undefined; readonly problems: readonly DocumentProblem[] };

/** Reads a parsed YAML document. Reports every mistake, not only the first. */
export const parsePolicyDocument = (raw: unknown, source: string): ParsedDocument => finish(parsingPolicyDocument(raw, source));

/** The same, one rule per step: compiling the conditions of thousands of rules takes longer than a check may wait. */
export function* parsingPolicyDocument(raw: unknown, source: string): Steps<ParsedDocument> {
  if (!isMapping(raw)) {
    return { document: undefined, problems: [{ path: [], problem: `a policy document is a mapping with the keys ${DOCUMENT_KEYS.join(', ')}` }] };
  }
  const problems: Problems = [];
  refuseUnknownKeys(raw, DOCUMENT_KEYS, [], problems);
  const name = readName(raw, 'name', [], problems);
  const scope = readScope(raw.scope, problems);
  const rules = yield* readRules(raw.rules, raw.budget !== undefined, problems);
  if (name === undefined || scope === undefined) return { document: undefined, problems };
  return { document: { name, scope, rules, budget: raw.budget, source }, problems };
}

function refuseUnknownKeys(raw: Mapping, known: readonly string[], path: PolicyPath, problems: Problems): void {
  for (const key of Object.keys(raw)) {
    if (!known.includes(key)) problems.push({ path: [...path, key], problem: unknownKey(key, known), onKey: true });
  }
}

// Names are shown on terminals and in audit entries; a control character in them could forge a line.
const PRINTABLE = /^[^\p{C}]+$/u;

function readName(raw: Mapping, key: 'name' | 'id', path: PolicyPath, problems: Problems): string | undefined {
  const value = raw[key];
  if (value === undefined) return missing(key, path, problems);
  if (typeof value === 'string' && value.trim() === value && value.length <= MAX_NAME_LENGTH && PRINTABLE.test(value)) return value;
  problems.push({ path: [...path, key], problem: `must be a text of 1 to ${MAX_NAME_LENGTH} printable characters, this is ${kindOf(value)}` });
  return undefined;
}

function readScope(value: unknown, problems: Problems): PolicyScope | undefined {
  if (value === undefined) return missing('scope', [], problems);
  const scope = typeof value === 'string' ? parsePolicyScope(value) : undefined;
  if (scope === undefined) problems.push({ path: ['scope'], problem: `must be ${SCOPE_FORMS}` });
  return scope;
}

function* readRules(value: unknown, mayBeMissing: boolean, problems: Problems): Steps<readonly Rule[]> {
  if (value === undefined) {
    if (!mayBeMissing) missing('rules', [], problems);
    return [];
  }
  if (!Array.isArray(value)) {
    problems.push({ path: ['rules'], problem: `must be a list of rules, this is ${kindOf(value)}` });
    return [];
  }
  if (value.length > MAX_RULES) {
    problems.push({ path: ['rules'], problem: `has ${value.length} rules; a document holds at most ${MAX_RULES}` });
    return [];
  }
  const rules: Rule[] = [];
  for (const [index, raw] of value.entries()) {
    const rule = readRule(raw, ['rules', index], problems);
    if (rule !== undefined) rules.push(rule);
    yield;
  }
  refuseTwins(value, problems);
  return rules;
}

function refuseTwins(rules: readonly unknown[], problems: Problems): void {
  const firstAt = new Map<unknown, number>();
  rules.forEach((raw, index) => {
    const id = isMapping(raw) ? raw.id : undefined;
    if (typeof id !== 'string') return;
    const first = firstAt.get(id);
    if (first === undefined) firstAt.set(id, index);
    else problems.push({ path: ['rules', index, 'id'], problem: `${id} is also the id of rules[${first}]; ids are unique within a document` });
  });
}

function readRule(raw: unknown, path: PolicyPath, problems: Problems): Rule | undefined {
  if (!isMapping(raw)) {
    problems.push({ path, problem: `a rule is a mapping with the keys ${RULE_KEYS.join(', ')}, this is ${kindOf(raw)}` });
    return undefined;
  }
  refuseUnknownKeys(raw, RULE_KEYS, path, problems);
  const id = readName(raw, 'id', path, problems);
  const actions = readGlobs(raw, 'actions', path, problems);
  const resources = readGlobs(raw, 'resources', path, problems);
  const when = readCondition(raw, path, problems);
  const effect = readEffect(raw.effect, path, problems);
  const reason = readText(raw, 'reason', path, `a text of at most ${MAX_REASON_LENGTH} characters`, MAX_REASON_LENGTH, problems);
  return id === undefined || effect === undefined ? undefined : { id, actions, resources, when, effect, reason };
}

function readCondition(raw: Mapping, path: PolicyPath, problems: Problems): Condition | undefined {
  const text = readText(raw, 'when', path, 'a CEL expression in quotes', Number.POSITIVE_INFINITY, problems);
  if (text === undefined) return undefined;
  const compiled = compileCondition(text);
  if (compiled.ok) return compiled.value;
  problems.push(...compiled.fault.map(({ offset, problem }) => ({ path: [...path, 'when'], offset, problem })));
  return undefined;
}

function readEffect(value: unknown, path: PolicyPath, problems: Problems): Effect | undefined {
  if (value === undefined) return missing('effect', path, problems);
  const effect = EFFECTS.find((known) => known === value);
  if (effect === undefined) problems.push({ path: [...path, 'effect'], problem: 'must be allow or deny' });
  return effect;
}

const EVERYTHING: readonly string[] = ['*'];

function readGlobs(raw: Mapping, key: 'actions' | 'resources', path: PolicyPath, problems: Problems): readonly string[] {
  const value = raw[key];
  if (value === undefined) return EVERYTHING;
  if (!Array.isArray(value)) {
    problems.push({ path: [...path, key], problem: `must be a list of patterns such as ["web_*"], this is ${kindOf(value)}` });
    return EVERYTHING;
  }
  if (value.length === 0) problems.push({ path: [...path, key], problem: `names nothing; leave ${key} out to mean all of them` });
  value.forEach((glob: unknown, index) => {
    if (typeof glob === 'string' && glob.length > 0 && glob.length <= MAX_GLOB_LENGTH) return;
    problems.push({ path: [...path, key, index], problem: `must be a pattern of 1 to ${MAX_GLOB_LENGTH} characters, this is ${kindOf(glob)}` });
  });
  return value as readonly string[];
}

function readText(
  raw: Mapping, key: 'when' | 'reason', path: PolicyPath, wanted: string, maxLength: number, problems: Problems,
): string | undefined {
  const value = raw[key];
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.trim() !== '' && value.length <= maxLength) return value;
  problems.push({ path: [...path, key], problem: `must be ${wanted}, this is ${kindOf(value)}` });
  return undefined;
}

function missing(key: string, path: PolicyPath, problems: Problems): undefined {
  problems.push({ path, problem: `${key} is missing` });
  return undefined;
}

/** What a reader would call the value. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string': return value.trim() === '' ? 'an empty text' : `a text of ${value.length} characters`;
    case 'number': case 'bigint': return 'a number';
    case 'boolean': return 'true or false';
    default: return 'a mapping';
  }
}
