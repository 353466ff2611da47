/**
 * Makes a function of a condition, once, when its policy is loaded. Each part of the expression becomes a closure that
 * returns its value for a check; errors are values, too. Code that runs on every check usually allocates nothing.
 */
import { assert } from '../base/result.ts';
import type { Overload } from './functions.ts';
import { compileLoop } from './loops.ts';
import type { Arithmetic } from './numbers.ts';
import { compute, isIn } from './operators.ts';
import { SPENT } from './steps.ts';
import type { BinaryOperator } from './syntax.ts';
import { stepsOf, type Typed, type TypedBinary, type TypedCall, type Variable } from './typed.ts';
import { type CelType, mayBe, nameOfValue, operandName } from './types.ts';
import {
  areEqual,
  CelMap,
  compare,
  Failure,
  isObject,
  kindOf,
  lookUp,
  NO_VALUE,
  numberOf,
  Optional,
  type Steps,
  stepsToRead,
  Uint,
  type Value,
} from './values.ts';

type Fields = { readonly [key: string]: Value };

/** The check for which a condition is evaluated. */
export type Frame = Steps & {
  readonly agent: { readonly org_id: string; readonly team_id: string; readonly agent_id: string };
  readonly action: string;
  readonly resource: string;
  readonly attributes: Fields;
  readonly caller: Fields | null;
  readonly estimated_cost_usd: number;
  /** The variables of the loops that are running. */
  readonly locals: Value[];
};

export type Run = (frame: Frame) => Value;

/** Takes the steps of the whole expression first. */
export function interpreted(node: Typed): Run {
  const steps = stepsOf(node);
  const run = compile(node);
  return (frame) => {
    frame.left -= steps;
    return frame.left < 0 ? SPENT : run(frame);
  };
}

const overloadFailure = (operation: string): Failure => new Failure(`no such overload: ${operation}`);

function compile(node: Typed): Run {
  switch (node.op) {
    case 'constant': {
      const { value } = node;
      return () => value;
    }
    case 'variable': {
      const { name } = node;
      return (frame) => frame[name];
    }
    case 'local': {
      const { slot } = node;
      return (frame) => frame.locals[slot] as Value;
    }
    case 'select':
      return compileSelect(node.target, node.field, node.isOptional);
    case 'has':
      return compileHas(node.target, node.field);
    case 'index':
      return compileIndex(node.target, node.index, node.isOptional);
    case 'call':
      return compileCall(node);
    case 'matches': {
      const { pattern, text } = node;
      const run = compile(text);
      return (frame) => {
        const value = run(frame);
        if (typeof value === 'string') return pattern.isFoundIn(value, frame);
        if (value instanceof Failure) return value;
        return overloadFailure(`${nameOfValue(value, frame)}.matches(string)`);
      };
    }
    case 'loop': {
      const { over, predicate, transform } = node;
      const body = (part: Typed | undefined) =>
        part === undefined ? undefined : { run: compile(part), steps: stepsOf(part) };
      return compileLoop(node, compile(over), body(predicate), body(transform));
    }
    case 'optMap':
      return compileOptMap(node.target, node.slot, node.body, node.isFlat);
    case 'list':
      return compileList(node.elements);
    case 'map':
      return compileMap(node.entries);
    case 'not': {
      const run = compile(node.operand);
      return (frame) => {
        const value = run(frame);
        if (typeof value === 'boolean') return !value;
        return value instanceof Failure ? value : overloadFailure(`!${operandName(node.operand.type, value, frame)}`);
      };
    }
    case 'negate':
      return compileNegation(node.operand);
    case 'and':
      return compileLogical(node.left, node.right, false);
    case 'or':
      return compileLogical(node.left, node.right, true);
    case 'binary':
      return compileBinary(node);
    case 'choice': {
      const [condition, yes, no] = [compile(node.condition), compile(node.yes), compile(node.no)];
      return (frame) => {
        const value = condition(frame);
        if (value === true) return yes(frame);
        if (value === false) return no(frame);
        return value instanceof Failure
          ? value
          : overloadFailure(`${operandName(node.condition.type, value, frame)} ? … : …`);
      };
    }
  }
}

/** An operand equal to `decisive` decides, even if the other one fails. */
function compileLogical(left: Typed, right: Typed, decisive: boolean): Run {
  const [first, second] = [compile(left), compile(right)];
  return (frame) => {
    const a = first(frame);
    if (a === decisive) return decisive;
    const b = second(frame);
    if (b === decisive) return decisive;
    if (typeof a === 'boolean' && typeof b === 'boolean') return !decisive;
    if (a instanceof Failure) return a;
    if (b instanceof Failure) return b;
    return overloadFailure(
      `${operandName(left.type, a, frame)} ${decisive ? '||' : '&&'} ${operandName(right.type, b, frame)}`,
    );
  };
}

/** Values for a field or an element that is missing, or that its owner cannot have. */
type Missing = { readonly isOptional: boolean; readonly absent: Value; readonly impossible: Failure };

function missingOf(isOptional: boolean, reason: string): Missing {
  const impossible = new Failure(reason);
  return { isOptional, absent: isOptional ? NO_VALUE : impossible, impossible };
}

function compileSelect(target: Typed, field: string, isOptional: boolean): Run {
  const missing = missingOf(isOptional, `No such key: ${field}`);
  if (!isOptional && target.op === 'variable') {
    const quick = quickSelect(target.name, field, missing.absent);
    if (quick !== undefined) return quick;
  }
  const run = compile(target);
  return (frame) => {
    const object = run(frame);
    return object instanceof Failure ? object : fieldOf(object, field, missing);
  };
}

/** Shortcuts for the fields that most conditions read. */
function quickSelect(name: Variable, field: string, absent: Value): Run | undefined {
  if (name === 'agent') {
    if (field === 'org_id') return ({ agent }) => agent.org_id;
    if (field === 'team_id') return ({ agent }) => agent.team_id;
    return field === 'agent_id' ? ({ agent }) => agent.agent_id : undefined;
  }
  if (name !== 'attributes') return undefined;
  // Whether a field is the object's own is asked only of names that every object has.
  if (field in Object.prototype)
    return ({ attributes }) => (Object.hasOwn(attributes, field) ? (attributes[field] ?? null) : absent);
  return ({ attributes }) => attributes[field] ?? absentOrNull(attributes, field, absent);
}

const absentOrNull = (attributes: Fields, field: string, absent: Value): Value =>
  Object.hasOwn(attributes, field) ? null : absent;

const IN_OPTIONAL: Missing = missingOf(true, 'No such key');

function fieldOf(object: Value, field: Value, { isOptional, absent, impossible }: Missing): Value {
  if (isObject(object) || object instanceof CelMap) {
    const value = lookUp(object, field);
    if (value === undefined) return absent;
    return isOptional ? new Optional(value) : value;
  }
  if (!(object instanceof Optional)) return impossible;
  return object.value === undefined ? NO_VALUE : fieldOf(object.value, field, IN_OPTIONAL);
}

function compileHas(target: Typed, field: string): Run {
  const run = compile(target);
  const missing = missingOf(false, `No such key: ${field}`);
  return (frame) => {
    const object = run(frame);
    if (object instanceof Failure) return object;
    if (isObject(object) || object instanceof CelMap) return lookUp(object, field) !== undefined;
    const value = fieldOf(object, field, missing);
    return value instanceof Failure ? value : value !== NO_VALUE;
  };
}

function compileIndex(target: Typed, index: Typed, isOptional: boolean): Run {
  const [object, key] = [compile(target), compile(index)];
  // An agent may have sent the key, and reasons are logged. A key that the author has written is named.
  const isWritten = index.op === 'constant' && typeof index.value === 'string';
  const missing = missingOf(isOptional, isWritten ? `No such key: ${String(index.value)}` : 'No such key');
  return (frame) => {
    const within = object(frame);
    if (within instanceof Failure) return within;
    const at = key(frame);
    return at instanceof Failure ? at : elementOf(within, at, missing, frame);
  };
}

function elementOf(within: Value, at: Value, missing: Missing, frame: Frame): Value {
  if (within instanceof Optional) {
    return within.value === undefined ? NO_VALUE : elementOf(within.value, at, IN_OPTIONAL, frame);
  }
  if (isObject(within) || within instanceof CelMap) return fieldOf(within, at, missing);
  const nth = numberOf(at);
  if (!Array.isArray(within) || nth === undefined || (typeof nth === 'number' && !Number.isInteger(nth)))
    return overloadFailure(`${nameOfValue(within, frame)}[${nameOfValue(at, frame)}]`);
  if (nth >= 0 && nth < within.length) {
    const element = within[Number(nth)] as Value;
    return missing.isOptional ? new Optional(element) : element;
  }
  return missing.isOptional
    ? NO_VALUE
    : new Failure(`No such key: index out of bounds, index ${nth} >= size ${within.length}`);
}

const suits = ({ params }: Overload, args: readonly Value[]): boolean =>
  params.every(({ kind }, nth) => kind === 'dyn' || kind === kindOf(args[nth] as Value));

/** A longer text is looked for in a way that may compare each of its characters at each position. */
const LONG_PART = 250;

/** Takes the steps that it takes to read the texts among the arguments. */
function takeForTexts(first: Value, second: Value, frame: Frame): void {
  if (typeof first !== 'string') return;
  frame.left -= stepsToRead(first.length);
  if (typeof second !== 'string') return;
  frame.left -= stepsToRead(second.length);
  if (second.length > LONG_PART && first.length > second.length)
    frame.left -= stepsToRead(second.length * first.length);
}

function compileCall({ name, isMethod, args, overloads }: TypedCall): Run {
  const runs = args.map(compile);
  const [only] = overloads;
  assert(only !== undefined, 'a call that has no overload is refused');
  const isKnown = overloads.length === 1 && only.params.every((param, nth) => isSure(param, args[nth]?.type));
  const [first, second] = runs;
  if (runs.length <= 2 && first !== undefined) {
    const isUnary = second === undefined;
    return (frame) => {
      const a = first(frame);
      if (a instanceof Failure) return a;
      const b = isUnary ? null : second(frame);
      if (b instanceof Failure) return b;
      takeForTexts(a, b, frame);
      if (frame.left < 0) return SPENT;
      const found = isKnown ? only : overloads.find((overload) => suits(overload, isUnary ? [a] : [a, b]));
      if (found === undefined) return noOverload(name, isMethod, isUnary ? [a] : [a, b], frame);
      return isUnary ? found.run(frame, a) : found.run(frame, a, b);
    };
  }
  return (frame) => {
    const values: Value[] = [];
    for (const run of runs) {
      const value = run(frame);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    takeForTexts(values[0] ?? null, values[1] ?? null, frame);
    if (frame.left < 0) return SPENT;
    const found = isKnown ? only : overloads.find((overload) => suits(overload, values));
    return found === undefined ? noOverload(name, isMethod, values, frame) : found.run(frame, ...values);
  };
}

const isSure = (param: CelType, arg: CelType | undefined): boolean =>
  param.kind === 'dyn' || (arg !== undefined && arg.kind === param.kind && mayBe(param, arg));

function noOverload(name: string, isMethod: boolean, args: readonly Value[], steps: Steps): Failure {
  const types = args.map((value) => nameOfValue(value, steps));
  const receiver = isMethod ? `${types.shift()}.` : '';
  return new Failure(`found no matching overload for '${receiver}${name}(${types.join(', ')})'`);
}

type Item = { readonly value: Typed; readonly isOptional: boolean };

function compileList(elements: readonly Item[]): Run {
  const runs = elements.map(({ value, isOptional }) => ({ run: compile(value), isOptional }));
  return (frame) => {
    const list: Value[] = [];
    for (const { run, isOptional } of runs) {
      const value = presentValue(run(frame), isOptional, frame);
      if (value instanceof Failure) return value;
      if (value !== undefined) list.push(value);
    }
    return list;
  };
}

/** Undefined: it is left out. */
function presentValue(value: Value, isOptional: boolean, frame: Steps): Value | undefined {
  if (!isOptional || value instanceof Failure) return value;
  return value instanceof Optional ? value.value : overloadFailure(`?${nameOfValue(value, frame)}`);
}

const TWICE = new Failure('a map has the same key twice');
const NO_KEY = new Failure('a key of a map must be a string, an integer or a bool');

function compileMap(entries: readonly (Item & { readonly key: Typed })[]): Run {
  const runs = entries.map(({ key, value, isOptional }) => ({ key: compile(key), value: compile(value), isOptional }));
  const make: Run = (frame) => {
    const map = new CelMap();
    for (const { key, value, isOptional } of runs) {
      const [name, content] = [key(frame), presentValue(value(frame), isOptional, frame)];
      if (name instanceof Failure) return name;
      if (content instanceof Failure) return content;
      if (!isKey(name)) return NO_KEY;
      if (content !== undefined && !map.add(name, content)) return TWICE;
    }
    return map;
  };
  const isConstant = entries.every(
    ({ key, value, isOptional }) => key.op === 'constant' && value.op === 'constant' && !isOptional,
  );
  if (!isConstant) return make;
  let made: Value | undefined;
  return (frame) => (made ??= make(frame));
}

const isKey = (value: Value): boolean =>
  typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean' || value instanceof Uint;

function compileOptMap(target: Typed, slot: number, body: Typed, isFlat: boolean): Run {
  const [optional, made] = [compile(target), compile(body)];
  return (frame) => {
    const value = optional(frame);
    if (value instanceof Failure) return value;
    if (!(value instanceof Optional)) return overloadFailure(`${nameOfValue(value, frame)}.optMap(…)`);
    if (value.value === undefined) return NO_VALUE;
    frame.locals[slot] = value.value;
    const result = made(frame);
    return result instanceof Failure || isFlat ? result : new Optional(result);
  };
}

const MIN_INT = -(2n ** 63n);
const BEYOND = new Failure('the result is beyond 64 bits');

function compileNegation(operand: Typed): Run {
  const run = compile(operand);
  return (frame) => {
    const value = run(frame);
    if (typeof value === 'number') return -value;
    if (typeof value === 'bigint') return value === MIN_INT ? BEYOND : -value;
    return value instanceof Failure ? value : overloadFailure(`-${operandName(operand.type, value, frame)}`);
  };
}

type OnValues = (a: Value, b: Value, frame: Frame) => Value | undefined;

const ON_VALUES: Readonly<Record<Exclude<BinaryOperator, Arithmetic>, OnValues>> = {
  '==': areEqual,
  '!=': (a, b, frame) => !areEqual(a, b, frame),
  '<': (a, b, frame) => holds(compare(a, b, frame), (order) => order < 0),
  '<=': (a, b, frame) => holds(compare(a, b, frame), (order) => order <= 0),
  '>': (a, b, frame) => holds(compare(a, b, frame), (order) => order > 0),
  '>=': (a, b, frame) => holds(compare(a, b, frame), (order) => order >= 0),
  in: isIn,
};
const holds = (order: number | undefined, test: (order: number) => boolean): boolean | undefined =>
  order === undefined ? undefined : test(order);

const isArithmetic = (operator: BinaryOperator): operator is Arithmetic => !Object.hasOwn(ON_VALUES, operator);

function compileBinary(node: TypedBinary): Run {
  const { operator, left, right } = node;
  const [first, second] = [compile(left), compile(right)];
  const onValues: OnValues = isArithmetic(operator)
    ? (a, b, frame) => compute(operator, a, b, frame)
    : ON_VALUES[operator];
  const general = (a: Value, b: Value, frame: Frame): Value => {
    if (a instanceof Failure) return a;
    if (b instanceof Failure) return b;
    const value = onValues(a, b, frame);
    if (frame.left < 0) return SPENT;
    return (
      value ?? overloadFailure(`${operandName(left.type, a, frame)} ${operator} ${operandName(right.type, b, frame)}`)
    );
  };
  const quick = right.op === 'constant' ? quickTest(operator, right.value) : undefined;
  if (quick === undefined) return (frame) => general(first(frame), second(frame), frame);
  return (frame) => {
    const a = first(frame);
    return quick(a) ?? general(a, second(frame), frame);
  };
}

/** Most conditions compare a number or a text with one that is written out. Undefined: the value is of another type. */
function quickTest(operator: BinaryOperator, constant: Value): ((a: Value) => boolean | undefined) | undefined {
  if (typeof constant === 'string') {
    if (operator === '==') return (a) => (typeof a === 'string' ? a === constant : undefined);
    return operator === '!=' ? (a) => (typeof a === 'string' ? a !== constant : undefined) : undefined;
  }
  const number = typeof constant === 'bigint' && Number.isSafeInteger(Number(constant)) ? Number(constant) : constant;
  if (typeof number !== 'number') return undefined;
  switch (operator) {
    case '==':
      return (a) => (typeof a === 'number' ? a === number : undefined);
    case '!=':
      return (a) => (typeof a === 'number' ? a !== number : undefined);
    case '<':
      return (a) => (typeof a === 'number' ? a < number : undefined);
    case '<=':
      return (a) => (typeof a === 'number' ? a <= number : undefined);
    case '>':
      return (a) => (typeof a === 'number' ? a > number : undefined);
    case '>=':
      return (a) => (typeof a === 'number' ? a >= number : undefined);
    default:
      return undefined;
  }
}
