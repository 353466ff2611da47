/**
 * What a condition may do and how much work one evaluation can be, read off its syntax tree. CEL always ends, but
 * nested loops over what an agent sent, a text that doubles itself or a backtracking pattern could hold up every other
 * check. So conditions use only the functions of the table below, and loops are bounded by the size of the attributes.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { nearest } from '../base/mapping.ts';
import { isOwn } from './functions.ts';
import type { ConditionProblem, FunctionCall, NodeOf } from './problem.ts';

/** How often the body of the innermost loops runs: `factor × weight of the attributes and the resource ^ degree`. */
export type ConditionCost = {
  readonly factor: number;
  readonly degree: number;
  /** How many of the nested loops go over the resource. */
  readonly resourceDegree: number;
  readonly countsCharacters: boolean;
  /** The texts that the resource is split at; '' where each of its characters counts. */
  readonly resourceSeparators: readonly string[];
};

/** Two loops over attributes may be nested, not three. */
const MAX_DEGREE = 2;
/**
 * Steps of one evaluation. Those of all conditions of a check are counted together, and errors with them:
 * `policy-condition-steps.ts`.
 */
export const MAX_STEPS = 50_000;

type Cost =
  /** Does not depend on the size of its operands. */
  | 'constant'
  /** Reads at most the shorter of its operands. */
  | 'shorter'
  /** Reads all of its operands. */
  | 'whole'
  /** A macro that runs its second argument for every element. */
  | 'loop';

const FUNCTIONS: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  ['has', 'constant'],
  ['type', 'constant'],
  ['dyn', 'constant'],
  ['duration', 'constant'],
  ['bool', 'whole'],
  ['int', 'whole'],
  ['uint', 'whole'],
  ['double', 'whole'],
  ['timestamp', 'whole'],
  ['getDate', 'constant'],
  ['getDayOfMonth', 'constant'],
  ['getDayOfWeek', 'constant'],
  ['getDayOfYear', 'constant'],
  ['getFullYear', 'constant'],
  ['getHours', 'constant'],
  ['getMilliseconds', 'constant'],
  ['getMinutes', 'constant'],
  ['getMonth', 'constant'],
  ['getSeconds', 'constant'],
  ['startsWith', 'shorter'],
  ['endsWith', 'shorter'],
  ['contains', 'whole'],
  ['indexOf', 'whole'],
  ['lastIndexOf', 'whole'],
  ['substring', 'whole'],
  ['matches', 'whole'],
  ['lowerAscii', 'whole'],
  ['upperAscii', 'whole'],
  ['trim', 'whole'],
  ['split', 'whole'],
  ['join', 'whole'],
  ['size', 'whole'],
  ['string', 'whole'],
  ['all', 'loop'],
  ['exists', 'loop'],
  ['exists_one', 'loop'],
  ['filter', 'loop'],
]);

const OPERATORS: Readonly<Partial<Record<ASTNode['op'], Cost>>> = {
  '==': 'shorter',
  '!=': 'shorter',
  '<': 'shorter',
  '<=': 'shorter',
  '>': 'shorter',
  '>=': 'shorter',
  in: 'whole',
  '+': 'whole',
};

/** Functions whose operand must be written out, with the reason a policy author is given. */
const LITERAL_OPERAND: ReadonlyMap<string, string> = new Map([
  ['matches', 'requires a pattern in quotes, so that it is checked when the policy is loaded'],
  ['duration', 'requires a string in quotes, such as "1h30m"'],
  ['join', 'requires a separator in quotes'],
]);

const CALLER_FIELDS: readonly string[] = ['org_id', 'team_id', 'agent_id'];
/** A call of `matches`, whose pattern is to be compiled beforehand. */
export type MatchesCall = { readonly call: NodeOf<'rcall'>; readonly pattern: NodeOf<'value'> };
/** A number that is written out, without its sign. */
export type NumberNode = NodeOf<'value'> & { readonly args: number | bigint };

export type ConditionSurvey = {
  readonly problems: readonly ConditionProblem[];
  readonly cost: ConditionCost;
  readonly matchesCalls: readonly MatchesCall[];
  readonly ownCalls: readonly FunctionCall[];
  /** The loops whose rounds depend on what is sent. */
  readonly loops: readonly FunctionCall[];
  readonly splits: readonly FunctionCall[];
  /**
   * The numbers of each list, of the values of each mapping and of the branches of each choice, where all of these are
   * numbers.
   */
  readonly numbers: readonly (readonly NumberNode[])[];
};

export function surveyCondition(ast: ASTNode): ConditionSurvey {
  const surveyor = new Surveyor();
  surveyor.visit(ast, { factor: 1, degree: 0, variable: undefined, resourceDegree: 0, resourceNames: RESOURCE });
  const { problems, cost, matchesCalls, ownCalls, loops, splits, numbers } = surveyor;
  const { factor, degree } = cost;
  if (degree > MAX_DEGREE)
    problems.push({
      offset: ast.start,
      problem: `loops over attributes may be nested at most ${MAX_DEGREE} deep; these are ${degree} deep`,
    });
  if (factor > MAX_STEPS)
    problems.push({
      offset: ast.start,
      problem: `loops over its own lists ${factor} times; the maximum is ${MAX_STEPS}`,
    });
  return { problems, cost, matchesCalls, ownCalls, loops, splits, numbers };
}

/** The loops around a node: how often it runs, and the variable that takes the elements of the innermost one. */
type Loops = {
  readonly factor: number;
  readonly degree: number;
  readonly variable: string | undefined;
  readonly resourceDegree: number;
  /** The variables that may stand for the resource or for a part of it. */
  readonly resourceNames: readonly string[];
};

class Surveyor {
  readonly problems: ConditionProblem[] = [];
  readonly matchesCalls: MatchesCall[] = [];
  readonly ownCalls: FunctionCall[] = [];
  readonly loops: FunctionCall[] = [];
  readonly splits: FunctionCall[] = [];
  readonly numbers: (readonly NumberNode[])[] = [];
  #factor = 1;
  #degree = 0;
  #resourceDegree = 0;
  #countsCharacters = false;
  #isResourceLooped = false;
  #isMatchedInLoop = false;
  readonly #separators = new Set<string>();

  get cost(): ConditionCost {
    // Where the resource is in a loop, the variable of one may stand for it or for a part of it. Matching reads each
    // character.
    const resourceSeparators = !this.#isResourceLooped ? [] : this.#isMatchedInLoop ? [''] : [...this.#separators];
    return {
      factor: this.#factor,
      degree: this.#degree,
      resourceDegree: this.#resourceDegree,
      countsCharacters: this.#countsCharacters,
      resourceSeparators,
    };
  }

  visit(node: ASTNode, loops: Loops): void {
    this.#factor = Math.max(this.#factor, loops.factor);
    this.#degree = Math.max(this.#degree, loops.degree);
    this.#resourceDegree = Math.max(this.#resourceDegree, loops.resourceDegree);
    switch (node.op) {
      case 'value':
        return;
      case 'id': {
        if (loops.degree > 0 && node.args === 'resource') this.#isResourceLooped = true;
        return;
      }
      case '.':
      case '.?': {
        this.#checkCallerField(node.args[0], node.args[1], node);
        return this.visit(node.args[0], loops);
      }
      case 'call':
        return this.#visitCall(node, node.args[0], undefined, node.args[1], loops);
      case 'rcall': {
        if (node.args[0] === 'matches') this.#noteMatches(node);
        return this.#visitCall(node, node.args[0], node.args[1], node.args[2], loops);
      }
      case '!_':
      case '-_':
        return this.visit(node.args, loops);
      case 'map': {
        this.#noteNumbers(node.args.map(([, value]) => value));
        return node.args.forEach((entry) => entry.forEach((part) => this.visit(part, loops)));
      }
      default: {
        const operands: readonly ASTNode[] = node.args;
        if (node.op === 'list') this.#noteNumbers(operands);
        if (node.op === '?:') this.#noteNumbers(operands.slice(1));
        this.#charge(OPERATORS[node.op] ?? 'constant', operands, loops);
        for (const operand of operands) this.visit(operand, loops);
      }
    }
  }

  #visitCall(
    node: FunctionCall,
    name: string,
    receiver: ASTNode | undefined,
    args: readonly ASTNode[],
    loops: Loops,
  ): void {
    const cost = FUNCTIONS.get(name);
    if (cost === undefined) {
      const guess = nearest(name, [...FUNCTIONS.keys()]);
      this.problems.push({
        offset: node.start,
        problem: `conditions have no function ${name}()${guess === undefined ? '' : `; did you mean ${guess}()?`}`,
      });
      return;
    }
    this.#checkLiteral(name, args[0]);
    this.#checkZone(name, args[0], loops);
    if (isOwn(name, receiver !== undefined, args.length)) this.ownCalls.push(node);
    if (name === 'split') this.#noteSplit(node, receiver, args[0]);
    if (name === 'matches' && loops.degree > 0) this.#noteMatchInLoop(receiver, loops);
    if (receiver !== undefined) this.visit(receiver, loops);
    if (cost === 'loop' && receiver !== undefined) return this.#visitLoop(node, receiver, args, loops);
    this.#charge(cost, receiver === undefined ? args : [receiver, ...args], loops);
    for (const arg of args) this.visit(arg, loops);
  }

  /**
   * Splitting makes as many values as there are separators, or characters. The variable of a loop may be a part of the
   * resource.
   */
  #noteSplit(call: FunctionCall, text: ASTNode | undefined, separator: ASTNode | undefined): void {
    this.splits.push(call);
    if (!isOfResourceAlone(text)) this.#countsCharacters = true;
    if (text !== undefined && (reaches(text, RESOURCE) || !reaches(text, SENT)))
      this.#separators.add(textIn(separator) ?? '');
  }

  #noteMatchInLoop(text: ASTNode | undefined, { resourceNames }: Loops): void {
    if (!isOfResourceAlone(text)) this.#countsCharacters = true;
    if (text !== undefined && reaches(text, resourceNames)) this.#isMatchedInLoop = true;
  }

  #visitLoop(call: FunctionCall, over: ASTNode, [variable, ...body]: readonly ASTNode[], loops: Loops): void {
    if (reaches(over, RESOURCE)) this.#isResourceLooped = true;
    const inner = this.#loopsWithin(over, variable?.op === 'id' ? variable.args : undefined, loops);
    if (inner.degree > 0) this.loops.push(call);
    for (const node of body) this.visit(node, inner);
  }

  #loopsWithin(over: ASTNode, variable: string | undefined, loops: Loops): Loops {
    const { factor, degree, variable: outer, resourceDegree, resourceNames } = loops;
    const ofResource = reaches(over, resourceNames)
      ? {
          resourceDegree: resourceDegree + 1,
          resourceNames: variable === undefined ? resourceNames : [...resourceNames, variable],
        }
      : { resourceDegree, resourceNames };
    // A list written in the expression has the length it has, and its elements may all be the same large value.
    if (over.op === 'list' || over.op === 'map')
      return { factor: factor * Math.max(1, over.args.length), degree, variable: undefined, ...ofResource };
    // A loop over the elements of the enclosing loop meets each value once, so it does not count as another loop over
    // the attributes.
    if (outer !== undefined && rootOfPath(over) === outer) return { factor, degree, variable, ...ofResource };
    return { factor, degree: degree + 1, variable, ...ofResource };
  }

  /** Inside a loop, reading something from outside of it in every round counts as another loop. */
  #charge(cost: Cost, operands: readonly ASTNode[], { degree, resourceDegree, variable, resourceNames }: Loops): void {
    if (degree === 0) return;
    const isRepeated = (names: readonly string[]): boolean => {
      const outside = operands.filter((operand) => reaches(operand, names)).length;
      return cost === 'whole' ? outside > 0 : cost === 'shorter' && outside > 1;
    };
    if (isRepeated(SENT)) this.#degree = Math.max(this.#degree, degree + 1);
    if (isRepeated(resourceNames.filter((name) => name !== variable)))
      this.#resourceDegree = Math.max(this.#resourceDegree, resourceDegree + 1);
  }

  #checkLiteral(name: string, operand: ASTNode | undefined): void {
    const problem = LITERAL_OPERAND.get(name);
    if (problem === undefined || operand === undefined || operand.op === 'value') return;
    this.problems.push({ offset: operand.start, problem: `${name}() ${problem}` });
  }

  /** Computing in a time zone is a thousand times slower than anything else here. */
  #checkZone(name: string, zone: ASTNode | undefined, { factor, degree }: Loops): void {
    if (zone === undefined || !name.startsWith('get') || (factor === 1 && degree === 0)) return;
    this.problems.push({ offset: zone.start, problem: `${name}() does not accept a time zone inside a loop` });
  }

  #noteMatches(call: NodeOf<'rcall'>): void {
    const pattern = call.args[2][0];
    if (pattern?.op === 'value') this.matchesCalls.push({ call, pattern });
  }

  #noteNumbers(nodes: readonly ASTNode[]): void {
    const numbers = nodes.map(numberIn).filter((node) => node !== undefined);
    if (numbers.length > 1 && numbers.length === nodes.length) this.numbers.push(numbers);
  }

  /**
   * `caller` may be null, which leaves its fields to the moment of evaluation; a field that never exists is a typing
   * mistake.
   */
  #checkCallerField(owner: ASTNode, field: string, node: ASTNode): void {
    if (owner.op !== 'id' || owner.args !== 'caller' || CALLER_FIELDS.includes(field)) return;
    this.problems.push({ offset: node.start, problem: `caller has no ${field}; it has ${CALLER_FIELDS.join(', ')}` });
  }
}

function numberIn(node: ASTNode): NumberNode | undefined {
  if (node.op === '-_') return numberIn(node.args);
  return node.op === 'value' && (typeof node.args === 'number' || typeof node.args === 'bigint')
    ? (node as NumberNode)
    : undefined;
}

/** The variable that a path such as `file.owners["x"]` starts from; undefined for anything but a path. */
function rootOfPath(node: ASTNode): string | undefined {
  switch (node.op) {
    case 'id':
      return node.args;
    case '.':
      return rootOfPath(node.args[0]);
    case '[]':
      return node.args[1].op === 'value' ? rootOfPath(node.args[0]) : undefined;
    default:
      return undefined;
  }
}

/** The text that is written out; undefined for anything else. */
const textIn = (node: ASTNode | undefined): string | undefined =>
  node?.op === 'value' && typeof node.args === 'string' ? node.args : undefined;

/** The variables whose size the agent chooses. */
const SENT: readonly string[] = ['attributes', 'resource'];
const RESOURCE: readonly string[] = ['resource'];
const ATTRIBUTES: readonly string[] = ['attributes'];

const isOfResourceAlone = (text: ASTNode | undefined): boolean =>
  text !== undefined && reaches(text, RESOURCE) && !reaches(text, ATTRIBUTES);

/** True when the value comes out of one of the variables directly, not by way of the variable of a loop. */
function reaches(node: ASTNode, variables: readonly string[]): boolean {
  const isFrom = (part: ASTNode): boolean => reaches(part, variables);
  switch (node.op) {
    case 'value':
      return false;
    case 'id':
      return variables.includes(node.args);
    case '.':
    case '.?':
      return isFrom(node.args[0]);
    case '!_':
    case '-_':
      return isFrom(node.args);
    case 'call':
      return node.args[1].some(isFrom);
    case 'rcall':
      return isFrom(node.args[1]) || node.args[2].some(isFrom);
    case 'map':
      return node.args.some(([key, value]) => isFrom(key) || isFrom(value));
    default:
      return (node.args as readonly ASTNode[]).some(isFrom);
  }
}
