/**
 * Finds the types of a condition, as the language definition of CEL says, and what its names stand for. Values that an
 * agent sends are `dyn`, and their types are found when the condition is evaluated. In two places conditions accept
 * more than CEL does, because JSON has one kind of number: `attributes.size * 2` and `estimated_cost_usd == 1` need no
 * `2.0`.
 */
import { nearest } from '../base/mapping.ts';
import { FUNCTION_NAMES, NAMESPACES, type Overload, overloadsOf } from './functions.ts';
import { Pattern } from './matches.ts';
import { operatorType } from './operators.ts';
import type { ConditionProblem } from './problem.ts';
import { MAX_STEPS } from './steps.ts';
import {
  type Binary,
  type Call,
  type Choice,
  dottedName,
  type Index,
  type List,
  type Mapping,
  type Node,
  type Select,
} from './syntax.ts';
import type { LoopKind, Typed, Variable } from './typed.ts';
import {
  AGENT,
  BOOL,
  type CelType,
  DOUBLE,
  DYN,
  INT,
  isNumeric,
  join,
  joinAll,
  listOf,
  mapOf,
  mayBe,
  optionalOf,
  STRING,
  TYPE,
  TYPE_NAMES,
  typeName,
  typeOfValue,
} from './types.ts';
import { Failure, Timestamp, TypeValue, type Value } from './values.ts';

const VARIABLES: Readonly<Record<Variable, CelType>> = {
  agent: AGENT,
  action: STRING,
  resource: STRING,
  attributes: mapOf(STRING, DYN),
  caller: DYN, // null where there is none
  estimated_cost_usd: DOUBLE,
};
const AGENT_FIELDS: readonly string[] = ['org_id', 'team_id', 'agent_id'];

type LoopShape = { readonly kind: LoopKind; readonly variables: 1 | 2; readonly parts: readonly ('test' | 'make')[] };
const loops = (kind: LoopKind, variables: 1 | 2, ...parts: readonly ('test' | 'make')[]): LoopShape => ({
  kind,
  variables,
  parts,
});
const ONE_OR_TWO = (kind: LoopKind): readonly LoopShape[] => [loops(kind, 1, 'test'), loops(kind, 2, 'test')];

/** Loops, by how many variables they name and what follows. */
const LOOPS: ReadonlyMap<string, readonly LoopShape[]> = new Map([
  ['all', ONE_OR_TWO('all')],
  ['exists', ONE_OR_TWO('exists')],
  ['exists_one', ONE_OR_TWO('exists_one')],
  ['existsOne', ONE_OR_TWO('exists_one')],
  ['filter', [loops('filter', 1, 'test')]],
  ['map', [loops('map', 1, 'make'), loops('map', 1, 'test', 'make')]],
  ['transformList', [loops('map', 2, 'make'), loops('map', 2, 'test', 'make')]],
  ['transformMap', [loops('transformMap', 2, 'make'), loops('transformMap', 2, 'test', 'make')]],
]);

const NAMES: readonly string[] = [...FUNCTION_NAMES, ...LOOPS.keys(), 'matches', 'has', 'optMap', 'optFlatMap'];

/** The variables of the loops around a node. */
type Scope = { readonly depth: number; readonly locals: ReadonlyMap<string, { slot: number; type: CelType }> };
const OUTSIDE: Scope = { depth: 0, locals: new Map() };

export type Checked = { readonly typed: Typed; readonly problems: readonly ConditionProblem[] };

export function check(node: Node): Checked {
  const checker = new Checker();
  const typed = checker.typed(node, OUTSIDE);
  return { typed, problems: checker.problems };
}

/** Stands in place of what has a problem, so that nothing around it has another for the same reason. */
const UNKNOWN: Typed = { op: 'constant', type: DYN, value: null };

class Checker {
  readonly problems: ConditionProblem[] = [];

  #refuse(offset: number, problem: string): Typed {
    this.problems.push({ offset, problem });
    return UNKNOWN;
  }

  typed(node: Node, scope: Scope): Typed {
    switch (node.op) {
      case 'literal':
        return { op: 'constant', type: typeOfValue(node.value, { left: 0 }), value: node.value };
      case 'name':
        return this.#name(node.name, node.start, scope);
      case 'select':
        return this.#select(node, scope);
      case 'index':
        return this.#index(node, scope);
      case 'call':
        return this.#call(node, scope);
      case 'list':
        return this.#list(node, scope);
      case 'map':
        return this.#map(node, scope);
      case '!':
      case 'negate': {
        const operand = this.typed(node.operand, scope);
        const wanted = node.op === '!' ? ['bool', 'dyn'] : ['int', 'double', 'dyn'];
        if (!wanted.includes(operand.type.kind))
          return this.#refuse(node.start, `no such overload: ${node.op === '!' ? '!' : '-'}${typeName(operand.type)}`);
        return { op: node.op === '!' ? 'not' : 'negate', type: operand.type, operand };
      }
      case '&&':
      case '||': {
        const [left, right] = [this.typed(node.left, scope), this.typed(node.right, scope)];
        if (!mayBe(left.type, BOOL) || !mayBe(right.type, BOOL))
          return this.#refuse(
            node.start,
            `no such overload: ${typeName(left.type)} ${node.op} ${typeName(right.type)}`,
          );
        return { op: node.op === '&&' ? 'and' : 'or', type: BOOL, left, right };
      }
      case '?:':
        return this.#choice(node, scope);
      default:
        return this.#binary(node, scope);
    }
  }

  #name(name: string, start: number, { locals }: Scope): Typed {
    const local = locals.get(name);
    if (local !== undefined) return { op: 'local', ...local };
    if (Object.hasOwn(VARIABLES, name))
      return { op: 'variable', type: VARIABLES[name as Variable], name: name as Variable };
    if (TYPE_NAMES.has(name)) return { op: 'constant', type: TYPE, value: new TypeValue(name) };
    const guess = nearest(name, [...Object.keys(VARIABLES), ...locals.keys()]);
    return this.#refuse(start, `Unknown variable: ${name}${guess === undefined ? '' : `; did you mean ${guess}?`}`);
  }

  #select(node: Select, scope: Scope): Typed {
    const dotted = dottedName(node);
    if (dotted !== undefined && TYPE_NAMES.has(dotted) && !scope.locals.has(dotted.split('.', 1)[0] ?? ''))
      return { op: 'constant', type: TYPE, value: new TypeValue(dotted) };
    const { field, isOptional, start, fieldStart } = node;
    const target = this.typed(node.target, scope);
    const problem = fieldProblem(target, field);
    if (problem !== undefined) return this.#refuse(target.type.kind === 'dyn' ? start : fieldStart, problem);
    const type = fieldType(target.type, isOptional);
    return { op: 'select', type, target, field, isOptional };
  }

  #index(node: Index, scope: Scope): Typed {
    const { isOptional } = node;
    const [target, index] = [this.typed(node.target, scope), this.typed(node.index, scope)];
    const inside = target.type.kind === 'optional' ? (target.type.item ?? DYN) : target.type;
    const key = inside.kind === 'list' ? INT : inside.kind === 'map' ? (inside.key ?? DYN) : DYN;
    if (!['list', 'map', 'dyn'].includes(inside.kind) || !mayBe(key, index.type))
      return this.#refuse(node.start, `no such overload: ${typeName(target.type)}[${typeName(index.type)}]`);
    return { op: 'index', type: fieldType(target.type, isOptional), target, index, isOptional };
  }

  /** A list of constants is built once, not again for each check. */
  #list(node: List, scope: Scope): Typed {
    const elements = node.elements.map(({ value, isOptional }) => ({
      value: this.#item(value, isOptional, scope),
      isOptional,
    }));
    const item = joinAll(elements.map(({ value, isOptional }) => itemType(value.type, isOptional)));
    const type = listOf(item);
    const constants = elements.flatMap(({ value, isOptional }) =>
      value.op === 'constant' && !isOptional ? [value.value] : [],
    );
    return constants.length === elements.length
      ? { op: 'constant', type, value: constants }
      : { op: 'list', type, elements };
  }

  #item(node: Node, isOptional: boolean, scope: Scope): Typed {
    const value = this.typed(node, scope);
    return isOptional && !mayBe(value.type, optionalOf(DYN))
      ? this.#refuse(node.start, `? requires an optional value here, not ${typeName(value.type)}`)
      : value;
  }

  #map(node: Mapping, scope: Scope): Typed {
    const entries = node.entries.map(({ key, value, isOptional }) => {
      const typedKey = this.typed(key, scope);
      if (!['string', 'int', 'uint', 'bool', 'dyn'].includes(typedKey.type.kind))
        this.#refuse(key.start, `a key must be a string, an integer or a bool, not ${typeName(typedKey.type)}`);
      return { key: typedKey, value: this.#item(value, isOptional, scope), isOptional };
    });
    const type = mapOf(
      joinAll(entries.map(({ key }) => key.type)),
      joinAll(entries.map(({ value, isOptional }) => itemType(value.type, isOptional))),
    );
    return { op: 'map', type, entries };
  }

  #choice(node: Choice, scope: Scope): Typed {
    const condition = this.typed(node.condition, scope);
    const [yes, no] = [this.typed(node.yes, scope), this.typed(node.no, scope)];
    const isMixed = mayBe(yes.type, no.type) || (isNumeric(yes.type) && isNumeric(no.type));
    const hasNull = yes.type.kind === 'null' || no.type.kind === 'null';
    if (!mayBe(condition.type, BOOL) || !(isMixed || hasNull)) {
      const [test, first, second] = [condition, yes, no].map(({ type }) => typeName(type));
      return this.#refuse(node.start, `no such overload: ${test} ? ${first} : ${second}`);
    }
    return { op: 'choice', type: join(yes.type, no.type), condition, yes, no };
  }

  #binary(node: Binary, scope: Scope): Typed {
    const [left, right] = [this.typed(node.left, scope), this.typed(node.right, scope)];
    const type = operatorType(node.op, left.type, right.type);
    if (type !== undefined) return { op: 'binary', type, operator: node.op, left, right };
    const [first, second] = [typeName(left.type), typeName(right.type)];
    const hint = node.op === 'in' ? hintOfIn(first, second) : '';
    return this.#refuse(node.start, `no such overload: ${first} ${node.op} ${second}${hint}`);
  }

  #call(node: Call, scope: Scope): Typed {
    const { name, target, args } = node;
    if (target === undefined && name === 'has') return this.#has(node, scope);
    if (name === 'matches') return this.#matches(node, scope);
    if (target !== undefined) {
      const shapes = LOOPS.get(name) ?? [];
      const shape = shapes.find(({ variables, parts }) => variables + parts.length === args.length);
      if (shape !== undefined) return this.#loop(node, target, shape, scope);
      if (shapes.length > 0) return this.#refuse(node.start, `${name}() requires ${usageOf(shapes)}`);
      if (name === 'optMap' || name === 'optFlatMap') return this.#optMap(node, target, scope);
      const namespace = dottedName(target) ?? '';
      if (NAMESPACES.includes(namespace) && !scope.locals.has(namespace))
        return this.#function(node, `${namespace}.${name}`, undefined, scope);
    }
    return this.#function(node, name, target, scope);
  }

  #function(node: Call, name: string, target: Node | undefined, scope: Scope): Typed {
    if (!NAMES.includes(name)) {
      if (/^not$/i.test(name)) return this.#refuse(node.start, `${name} is written ! in conditions`);
      const guess = nearest(name, NAMES);
      const hint = guess === undefined ? '' : `; did you mean ${guess}()?`;
      return this.#refuse(node.start, `conditions have no function ${name}()${hint}`);
    }
    const isMethod = target !== undefined;
    const args = [...(isMethod ? [target] : []), ...node.args].map((arg) => this.typed(arg, scope));
    const overloads = overloadsOf(name, isMethod, args.length).filter(({ params }) =>
      params.every((param, nth) => mayBe(param, args[nth]?.type ?? DYN)),
    );
    const [first] = overloads;
    if (first === undefined) return this.#refuse(node.start, noOverload(name, isMethod, args));
    const made = valueOfLiteral(overloads, args);
    if (made instanceof Failure) return this.#refuse(node.args[0]?.start ?? node.start, made.reason);
    if (made !== undefined && !isMethod) return { op: 'constant', type: first.result, value: made };
    const isOne = overloads.every(({ result }) => typeName(result) === typeName(first.result));
    const type = isOne ? resultType(name, first.result, args) : DYN;
    return { op: 'call', type, name, isMethod, args, overloads };
  }

  #has({ start, args }: Call, scope: Scope): Typed {
    const [field] = args;
    if (field?.op !== 'select' || args.length !== 1)
      return this.#refuse(start, 'has() requires a field, such as has(attributes.size)');
    const target = this.typed(field.target, scope);
    const problem = fieldProblem(target, field.field);
    if (problem !== undefined)
      return this.#refuse(target.type.kind === 'dyn' ? field.start : field.fieldStart, problem);
    return { op: 'has', type: BOOL, target, field: field.field };
  }

  #matches(node: Call, scope: Scope): Typed {
    const { start, target } = node;
    const [subject, pattern] = target === undefined ? node.args : [target, ...node.args];
    const count = node.args.length + (target === undefined ? 0 : 1);
    if (subject === undefined || pattern === undefined || count !== 2) {
      const args = [...(target === undefined ? [] : [target]), ...node.args].map((arg) => this.typed(arg, scope));
      return this.#refuse(start, noOverload('matches', target !== undefined, args));
    }
    const text = this.typed(subject, scope);
    if (pattern.op !== 'literal')
      return this.#refuse(
        pattern.start,
        'matches() requires a pattern in quotes, so that it is checked when the policy is loaded',
      );
    if (typeof pattern.value !== 'string') return this.#refuse(pattern.start, 'matches() requires a pattern in quotes');
    if (!mayBe(text.type, STRING))
      return this.#refuse(start, `no such overload: ${typeName(text.type)}.matches(string)`);
    const compiled = Pattern.compile(pattern.value);
    return compiled.ok
      ? { op: 'matches', type: BOOL, text, pattern: compiled.value }
      : this.#refuse(pattern.start, compiled.fault);
  }

  #loop(node: Call, target: Node, { kind, variables, parts }: LoopShape, scope: Scope): Typed {
    const { name, args } = node;
    const over = this.typed(target, scope);
    const { kind: overKind, item = DYN, key = DYN } = over.type;
    if (!['list', 'map', 'dyn'].includes(overKind))
      return this.#refuse(node.start, `${name}() requires a list or a map, not ${typeName(over.type)}`);
    const names = args.slice(0, variables).map((arg) => (arg.op === 'name' ? arg.name : undefined));
    const nameless = names.indexOf(undefined);
    if (nameless !== -1)
      return this.#refuse(args[nameless]?.start ?? node.start, `${name}() requires a name here, such as x`);
    if (names[0] === names[1]) return this.#refuse(node.start, `${name}() requires two different names`);
    const first = overKind === 'list' ? (variables === 1 ? item : INT) : overKind === 'map' ? key : DYN;
    const inner = this.#within(scope, [
      [names[0] ?? '', first],
      ...(variables === 2 ? [[names[1] ?? '', item] as const] : []),
    ]);
    const bodies = args.slice(variables).map((arg) => this.typed(arg, inner));
    const part = (wanted: 'test' | 'make'): Typed | undefined => bodies[parts.indexOf(wanted)];
    const [predicate, transform] = [part('test'), part('make')];
    if (predicate !== undefined && !mayBe(predicate.type, BOOL))
      return this.#refuse(
        args[variables]?.start ?? node.start,
        `${name}() requires a condition here that is true or false, not ${typeName(predicate.type)}`,
      );
    const type = loopType(kind, over.type, transform?.type ?? DYN, variables === 2 ? first : DYN);
    const slot = scope.depth;
    return { op: 'loop', type, kind, name, over, slot, hasTwo: variables === 2, predicate, transform };
  }

  #within({ depth, locals }: Scope, added: readonly (readonly [string, CelType])[]): Scope {
    const all = new Map(locals);
    added.forEach(([name, type], nth) => {
      all.set(name, { slot: depth + nth, type });
    });
    return { depth: depth + added.length, locals: all };
  }

  #optMap(node: Call, receiver: Node, scope: Scope): Typed {
    const [variable, body] = node.args;
    const target = this.typed(receiver, scope);
    if (variable?.op !== 'name' || body === undefined || node.args.length !== 2)
      return this.#refuse(node.start, `${node.name}() requires a name and what to make of the value`);
    if (!mayBe(target.type, optionalOf(DYN)))
      return this.#refuse(node.start, `${node.name}() requires an optional value, not ${typeName(target.type)}`);
    const inner = this.#within(scope, [[variable.name, target.type.item ?? DYN]]);
    const made = this.typed(body, inner);
    const isFlat = node.name === 'optFlatMap';
    if (isFlat && !mayBe(made.type, optionalOf(DYN)))
      return this.#refuse(body.start, `optFlatMap() requires an optional value here, not ${typeName(made.type)}`);
    const type = isFlat ? made.type : optionalOf(made.type);
    return { op: 'optMap', type, target, slot: scope.depth, body: made, isFlat };
  }
}

/**
 * Evaluates a function of a literal text. A literal that cannot be converted, or names no time zone, is a mistake of
 * the author. Undefined: this is no such call.
 */
function valueOfLiteral(overloads: readonly Overload[], args: readonly Typed[]): Value | undefined {
  const [only] = overloads;
  const last = args.at(-1);
  if (overloads.length !== 1 || only === undefined || !only.isForLiterals) return undefined;
  if (last?.op !== 'constant' || typeof last.value !== 'string') return undefined;
  return only.run({ left: MAX_STEPS }, ...(only.isMethod ? [new Timestamp(0n)] : []), last.value);
}

const itemType = (type: CelType, isOptional: boolean): CelType => (isOptional ? (type.item ?? DYN) : type);

/** Returns the type of a field or an element. A member of an optional value is optional too. */
function fieldType(target: CelType, isOptional: boolean): CelType {
  const isInOptional = target.kind === 'optional';
  const inside = isInOptional ? (target.item ?? DYN) : target;
  const type = inside.kind === 'agent' ? STRING : (inside.item ?? DYN);
  return isOptional || isInOptional ? optionalOf(type) : type;
}

/** Why there is no such field; undefined where there may be one. */
function fieldProblem({ op, type, ...node }: Typed, field: string): string | undefined {
  const variable = op === 'variable' && 'name' in node ? node.name : undefined;
  if (type.kind === 'agent' || variable === 'caller')
    return AGENT_FIELDS.includes(field) ? undefined : `${variable} has no ${field}; it has ${AGENT_FIELDS.join(', ')}`;
  const inside = type.kind === 'optional' ? (type.item ?? DYN) : type;
  return ['map', 'dyn', 'agent'].includes(inside.kind) ? undefined : `a value of type ${typeName(type)} has no fields`;
}

/** Functions that return one of their arguments, or a part of it, have a type that depends on these. */
function resultType(name: string, result: CelType, [first, second]: readonly Typed[]): CelType {
  const item = first?.type.item ?? DYN;
  if (name === 'value') return item;
  if (name === 'orValue') return join(item, second?.type ?? DYN);
  if (name === 'or') return first?.type ?? result;
  return name.startsWith('optional.of') ? optionalOf(first?.type ?? DYN) : result;
}

function loopType(kind: LoopKind, over: CelType, made: CelType, key: CelType): CelType {
  if (kind === 'map') return listOf(made);
  if (kind === 'transformMap') return mapOf(key, made);
  if (kind !== 'filter') return BOOL;
  return over.kind === 'map' ? listOf(over.key ?? DYN) : over;
}

const usageOf = (shapes: readonly LoopShape[]): string =>
  shapes
    .map(({ variables, parts }) => [
      ...(variables === 1 ? ['a name'] : ['two names']),
      ...parts.map((part) => (part === 'test' ? 'a condition' : 'a value')),
    ])
    .map((parts) => parts.join(', '))
    .join('; or ');

function noOverload(name: string, isMethod: boolean, args: readonly Typed[]): string {
  const written = args.map(({ type }) => typeName(type));
  const receiver = isMethod ? `${written.shift()}.` : '';
  return `found no matching overload for '${receiver}${name}(${written.join(', ')})'`;
}

function hintOfIn(value: string, list: string): string {
  if (value === 'double' && list === 'list<int>') return '; write its numbers as 1.0 instead of 1';
  return value === 'int' && list === 'list<double>' ? '; wrap the value to look for in double(…)' : '';
}
