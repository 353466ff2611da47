/** The `when:` of a rule: a CEL expression, compiled once (docs/spec.md, Policy). */
import type { AgentIdentity } from '../base/ids.ts';
import { microToUsd } from '../base/money.ts';
import { fail, ok, type Result } from '../base/result.ts';
import { check } from './check.ts';
import { type Frame, interpreted } from './interpret.ts';
import { parse } from './parse.ts';
import { type ConditionProblem, ProblemError } from './problem.ts';
import { MAX_STEPS, TOO_MANY_STEPS } from './steps.ts';
import type { Node } from './syntax.ts';
import { BOOL, mayBe, runtimeTypeName, typeName } from './types.ts';
import { Failure, type Value } from './values.ts';

/** Plain JSON, as the agent sent it. Every number in it is a CEL double. */
export type Attributes = Readonly<Record<string, unknown>>;

/** The subject of a policy's decision. */
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

type Fields = { readonly [key: string]: Value };
type AgentFields = { org_id: string; team_id: string; agent_id: string };

const NO_ATTRIBUTES: Fields = Object.freeze({});

/**
 * The variables of an expression, under the names an author writes, and the steps that are left. One instance is filled
 * again for every check, so that a check allocates nothing. That is safe because evaluation is synchronous and keeps
 * nothing.
 */
export class ConditionVariables implements Frame {
  readonly agent: AgentFields = { org_id: '', team_id: '', agent_id: '' };
  action = '';
  resource = '';
  attributes: Fields = NO_ATTRIBUTES;
  caller: AgentFields | null = null;
  estimated_cost_usd = 0;
  left = MAX_STEPS;
  readonly locals: Value[] = [];
  readonly #caller: AgentFields = { org_id: '', team_id: '', agent_id: '' };

  fill({ agent, action, resource, attributes, caller, estimatedCostMicroUsd }: CheckSubject): this {
    fillAgent(this.agent, agent);
    this.action = action;
    this.resource = resource;
    this.attributes = (attributes as Fields | undefined) ?? NO_ATTRIBUTES; // JSON has no other values
    this.caller = caller === undefined ? null : fillAgent(this.#caller, caller);
    this.estimated_cost_usd = microToUsd(estimatedCostMicroUsd);
    this.left = MAX_STEPS;
    return this;
  }
}

function fillAgent(fields: AgentFields, { orgId, teamId, agentId }: AgentIdentity): AgentFields {
  fields.org_id = orgId;
  fields.team_id = teamId;
  fields.agent_id = agentId;
  return fields;
}

/** Parses and checks an expression. The problems say where in it, in characters. */
export function compileCondition(source: string): Result<Condition, readonly ConditionProblem[]> {
  if (source.length > MAX_CONDITION_LENGTH) {
    return fail([
      { offset: 0, problem: `is ${source.length} characters long; the maximum is ${MAX_CONDITION_LENGTH}` },
    ]);
  }
  const tree = treeOf(source);
  if (!tree.ok) return fail([tree.fault]);
  const { typed, problems } = check(tree.value);
  if (problems.length > 0) return fail(problems);
  if (!mayBe(typed.type, BOOL))
    return fail([{ offset: 0, problem: `must evaluate to true or false, not to ${typeName(typed.type)}` }]);
  const run = interpreted(typed);
  return ok({ source, evaluate: (variables) => outcomeOf(run(variables), variables) });
}

function treeOf(source: string): Result<Node, ConditionProblem> {
  try {
    return ok(parse(source));
  } catch (error) {
    if (error instanceof ProblemError) return fail({ offset: error.offset, problem: error.message });
    throw error;
  }
}

/** An evaluation that runs out of steps fails, whatever its value: the order of the rules must not matter. */
function outcomeOf(value: Value, { left }: ConditionVariables): ConditionOutcome {
  if (left < 0) return { error: TOO_MANY_STEPS };
  if (typeof value === 'boolean') return value;
  if (value instanceof Failure) return { error: value.reason };
  const type = typeof value === 'number' ? 'number' : runtimeTypeName(value);
  return {
    error: `it evaluates to ${value === null ? 'null' : `a value of type ${type}`}, not to true or false`,
  };
}
