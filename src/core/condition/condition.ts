/** The `when:` of a rule: a CEL expression, compiled once (docs/spec.md, Policy). */
import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import type { AgentIdentity } from '../base/ids.ts';
import { microToUsd } from '../base/money.ts';
import { fail, ok, type Result } from '../base/result.ts';
import { cutText, messageOf } from '../base/text.ts';
import { type ConditionSurvey, type MatchesCall, type NumberNode, surveyCondition } from './cost.ts';
import { evaluatorOf } from './evaluator.ts';
import { redirect, registerOwnFunctions, withWrittenNames } from './functions.ts';
import { Pattern } from './matches.ts';
import type { ConditionProblem } from './problem.ts';
import { SentWeights, sizeCheck } from './size.ts';
import { CheckSteps, countFailures, countSteps } from './steps.ts';
import { boundRuntimeTypes } from './types.ts';

/** Plain JSON, as the agent sent it. Every number in it is a CEL double. */
export type Attributes = Readonly<Record<string, unknown>>;

/** What a policy is asked about. */
export type CheckSubject = {
  readonly agent: AgentIdentity;
  readonly action: string;
  readonly resource: string;
  readonly attributes: Attributes | undefined;
  /** The agent on whose behalf this one acts, in a call from agent to agent. */
  readonly caller: AgentIdentity | undefined;
  readonly estimatedCostMicroUsd: number;
};

/** True, false, or why it is neither. A failed condition denies (docs/spec.md, Policy). */
export type ConditionOutcome = boolean | { readonly error: string };

export type Condition = { readonly source: string; evaluate(variables: ConditionVariables): ConditionOutcome };

export const MAX_CONDITION_LENGTH = 4096;

class CelAgent {
  org_id = '';
  team_id = '';
  agent_id = '';

  fill({ orgId, teamId, agentId }: AgentIdentity): this {
    this.org_id = orgId;
    this.team_id = teamId;
    this.agent_id = agentId;
    return this;
  }
}

const NO_ATTRIBUTES: Attributes = Object.freeze({});

/**
 * The variables of an expression, under the names an author writes. One instance is filled again for every check, so
 * that a check allocates nothing. That is safe because evaluation is synchronous and keeps nothing.
 */
export class ConditionVariables {
  readonly agent = new CelAgent();
  action = '';
  resource = '';
  attributes: Attributes = NO_ATTRIBUTES;
  caller: CelAgent | null = null;
  estimated_cost_usd = 0;
  readonly weights = new SentWeights();
  readonly steps = new CheckSteps();
  readonly #caller = new CelAgent();
  #asMaps: ConditionVariables | undefined;

  fill({ agent, action, resource, attributes, caller, estimatedCostMicroUsd }: CheckSubject): this {
    this.agent.fill(agent);
    this.action = action;
    this.resource = resource;
    this.attributes = attributes ?? NO_ATTRIBUTES;
    this.caller = caller === undefined ? null : this.#caller.fill(caller);
    this.estimated_cost_usd = microToUsd(estimatedCostMicroUsd);
    this.weights.reset(this.attributes);
    this.steps.reset();
    this.#asMaps = undefined;
    return this;
  }

  /**
   * The same, with maps in place of the objects among the attributes. The library tells an object's type by its
   * `constructor`, and an agent may send an attribute of that name.
   */
  asMaps(): ConditionVariables {
    this.#asMaps ??= Object.assign(new ConditionVariables(), this, { attributes: mapsOf(this.attributes) });
    return this.#asMaps;
  }
}

function mapsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(mapsOf);
  if (typeof value !== 'object' || value === null) return value;
  return new Map(Object.entries(value).map(([key, item]) => [key, mapsOf(item)]));
}

// The library's own `matches` runs backtracking expressions and cannot be replaced under its name. So in the tree of a
// parsed condition each call is redirected to this one, and its pattern replaced by the compiled one.
const LINEAR_MATCHES = 'matchesLinear';

// JSON has one kind of number, so an author who writes `attributes.size * 2` must not be told to write `2.0`.
const MIXED_ARITHMETIC: readonly [string, (a: number, b: number) => number][] = [
  ['+', (a, b) => a + b],
  ['-', (a, b) => a - b],
  ['*', (a, b) => a * b],
  ['/', (a, b) => a / b],
  ['%', (a, b) => a % b],
];

function createEnvironment(): Environment {
  const environment = new Environment({
    limits: { maxAstNodes: 1000, maxDepth: 32, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 8 },
  })
    .registerType('Agent', { ctor: CelAgent, fields: { org_id: 'string', team_id: 'string', agent_id: 'string' } })
    .registerVariable('agent', 'Agent')
    .registerVariable('action', 'string')
    .registerVariable('resource', 'string')
    .registerVariable('attributes', 'map<string, dyn>')
    .registerVariable('caller', 'dyn')
    .registerVariable('estimated_cost_usd', 'double')
    .registerType('Pattern', { ctor: Pattern, fields: {} })
    .registerFunction(
      `string.${LINEAR_MATCHES}(Pattern): bool`,
      (text: string, pattern: Pattern) => pattern.isFoundIn(text),
      { async: false },
    );
  for (const [operator, compute] of MIXED_ARITHMETIC) {
    environment.registerOperator(`double ${operator} int: double`, (a: number, b: bigint) => compute(a, Number(b)));
    environment.registerOperator(`int ${operator} double: double`, (a: bigint, b: number) => compute(Number(a), b));
  }
  environment.registerOperator('double % double: double', (a: number, b: number) => a % b);
  environment.registerOperator('double == int: bool', (a: number, b: bigint) => a === Number(b)); // and `!=`, and the other way round
  registerOwnFunctions(environment);
  const evaluator = evaluatorOf(environment);
  boundRuntimeTypes(evaluator);
  countFailures(evaluator);
  leaveOutDrawings(environment);
  return environment;
}

/**
 * The library draws the expression into each of its errors, which `reasonOf` drops. In a long expression that takes ten
 * times as long as the error itself, and a loop may fail in each of its rounds. Without the text there is no drawing.
 */
function leaveOutDrawings(environment: Environment): void {
  Object.defineProperty(Object.getPrototypeOf(environment.parse('true').ast), 'input', { value: '' });
}

const environment = createEnvironment();

/** Parses, type-checks and bounds an expression. The problems say where in it, in characters. */
export function compileCondition(source: string): Result<Condition, readonly ConditionProblem[]> {
  if (source.length > MAX_CONDITION_LENGTH) {
    return fail([
      { offset: 0, problem: `is ${source.length} characters long; the maximum is ${MAX_CONDITION_LENGTH}` },
    ]);
  }
  let parsed: ParseResult;
  try {
    parsed = environment.parse(source);
  } catch (error) {
    return fail([misspeltOperator(source, error) ?? problemOf(error)]);
  }
  const survey = surveyCondition(parsed.ast);
  const problems = [
    ...survey.problems,
    ...survey.matchesCalls.flatMap(compilePattern),
    ...survey.ownCalls.flatMap(redirect),
  ];
  survey.numbers.forEach(unifyNumbers);
  if (problems.length > 0) return fail(problems);
  const { valid, type, error } = parsed.check();
  if (!valid) return fail([problemOf(error)]);
  if (type !== 'bool' && type !== 'dyn')
    return fail([{ offset: 0, problem: `must evaluate to true or false, not to ${type ?? 'anything else'}` }]);
  countSteps(survey.loops, survey.splits);
  return ok({ source, evaluate: boundedEvaluation(parsed, source, survey) });
}

/** Puts the compiled pattern of a call into the tree, or says why the pattern cannot be compiled. */
function compilePattern({ call, pattern }: MatchesCall): readonly ConditionProblem[] {
  const refuse = (problem: string) => [{ offset: pattern.start, problem }];
  if (typeof pattern.args !== 'string') return refuse('matches() requires a pattern in quotes');
  try {
    const compiled = Pattern.compile(pattern.args);
    if (!compiled.ok) return refuse(compiled.fault);
    (call as { args: unknown }).args = [LINEAR_MATCHES, call.args[1], call.args[2]];
    (pattern as { args: unknown }).args = compiled.value;
    return [];
  } catch (error) {
    return refuse(`not a valid RE2 pattern: ${reasonOf(error)}`);
  }
}

/**
 * The library accepts only one type of number in `[1, 2.5]`. Where one of them is a double, this makes all of them
 * doubles.
 */
function unifyNumbers(numbers: readonly NumberNode[]): void {
  if (!numbers.some(({ args }) => typeof args === 'number')) return;
  for (const node of numbers) (node as { args: number }).args = Number(node.args);
}

function boundedEvaluation(
  parsed: ParseResult,
  source: string,
  { cost, loops, splits, matchesCalls }: ConditionSurvey,
): Condition['evaluate'] {
  const evaluate: Condition['evaluate'] = (variables) => evaluateOnce(parsed, source, variables);
  if (loops.length === 0 && splits.length === 0 && matchesCalls.length === 0) return evaluate;
  const refusalOf = sizeCheck(cost);
  return (variables) => {
    const error = refusalOf(variables);
    return error === undefined ? variables.steps.count(evaluate, variables) : { error };
  };
}

// `Error.stackTraceLimit` is V8's; the core knows no engine, hence the cast.
const engine = Error as unknown as { stackTraceLimit: number };

function evaluateOnce(parsed: ParseResult, source: string, variables: ConditionVariables): ConditionOutcome {
  // A missing attribute is an everyday outcome and agents choose what they send; collecting a stack trace would make it
  // many times as expensive as any other.
  const { stackTraceLimit } = engine;
  engine.stackTraceLimit = 0;
  try {
    const value = valueOf(parsed, variables);
    return typeof value === 'boolean'
      ? value
      : {
          error: `it evaluates to ${value === null ? 'null' : `a value of type ${typeof value}`}, not to true or false`,
        };
  } catch (error) {
    return { error: withoutSentKey(reasonOf(error), source) };
  } finally {
    engine.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * The reason is logged. So it names a key only where the condition itself does: one that the agent has sent, as in
 * `{"small": 1}[attributes.size]`, may be a secret.
 */
function withoutSentKey(reason: string, source: string): string {
  const [, key] = /^No such key: (?!index out of bounds)(.*)$/.exec(reason) ?? [];
  return key === undefined || source.includes(key) ? reason : 'No such key';
}

/** The library's errors for an object whose `constructor` is data. */
const IS_MISTAKEN = /^(?:Unsupported type|Cannot read properties)/;

function valueOf(parsed: ParseResult, variables: ConditionVariables): unknown {
  try {
    return parsed(variables);
  } catch (error) {
    if (!IS_MISTAKEN.test(reasonOf(error))) throw error;
    return parsed(variables.asMaps());
  }
}

function problemOf(error: unknown): ConditionProblem {
  const { range } = (error ?? {}) as { readonly range?: { readonly start: number } };
  return { offset: range?.start ?? 0, problem: reasonOf(error) };
}

const OPERATORS: ReadonlyMap<string, string> = new Map([
  ['and', '&&'],
  ['or', '||'],
  ['=', '=='],
  ['&', '&&'],
  ['|', '||'],
  ['contains', '.contains(…)'],
  ['startswith', '.startsWith(…)'],
  ['endswith', '.endsWith(…)'],
  ['matches', '.matches(…)'],
]);

/**
 * An operator as other languages write it. The library names one character of it, and where a word stands too many the
 * last of that.
 */
function misspeltOperator(source: string, error: unknown): ConditionProblem | undefined {
  const { offset, problem } = problemOf(error);
  if (!problem.startsWith('Unexpected character')) return undefined;
  const before = /\bnot\s+$/i.exec(source.slice(0, offset));
  const written = /^(?:\w+|[=&|])/.exec(source.slice(offset))?.[0];
  if (before !== null) return { offset: before.index, problem: `${before[0].trim()} is written ! in conditions` };
  if (written === undefined) return undefined;
  const operator = OPERATORS.get(written.toLowerCase());
  return {
    offset,
    problem:
      operator === undefined
        ? 'an operator such as && is missing before this'
        : `${written} is written ${operator} in conditions`,
  };
}

/** The first line of the library's message, without its drawing of the expression, in words that an author knows. */
function reasonOf(error: unknown): string {
  const [line = ''] = withWrittenNames(messageOf(error)).split('\n', 1);
  return cutText(
    REWORDED.reduce((known, [pattern, reworded]) => known.replace(pattern, reworded), line),
    300,
  );
}

const REWORDED: readonly (readonly [RegExp, string])[] = [
  [
    new RegExp(`^found no matching overload for '(.*)\\.${LINEAR_MATCHES}\\(Pattern\\)'$`),
    'no such overload: $1.matches(string)',
  ],
  [/^(no such overload: double in list<int>)$/, '$1; write its numbers as 1.0 instead of 1'],
  [/^(no such overload: int in list<double>)$/, '$1; wrap the value to look for in double(…)'],
  [/^((?:List elements must have|Map value uses) .*)$/, '$1; wrap each in dyn(…) to mix types'],
];
