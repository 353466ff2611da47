/** The operators of conditions between two values: their types, and what they do. */
import { ARITHMETIC, type Arithmetic, ON_DOUBLES, onInts, onUints } from './numbers.ts';
import { take } from './steps.ts';
import type { BinaryOperator } from './syntax.ts';
import { between, differenceOf, earlierBy, laterBy, sumOf } from './times.ts';
import { BOOL, type CelType, DYN, isNumeric, join, listOf, mayBe } from './types.ts';
import {
  areEqual,
  CelMap,
  Duration,
  type Failure,
  isObject,
  type Kind,
  lookUp,
  type Steps,
  stepsToRead,
  Timestamp,
  Uint,
  type Value,
} from './values.ts';

type Row = readonly [left: Kind, operator: Arithmetic, right: Kind, result: Kind];

/** A row for each pair of types that have such an operator, but for lists. */
const ARITHMETIC_TYPES: readonly Row[] = [
  ...ARITHMETIC.flatMap((operator): Row[] => [
    ['int', operator, 'int', 'int'],
    ['uint', operator, 'uint', 'uint'],
    ['double', operator, 'double', 'double'],
    // JSON has one kind of number, so an author who writes `attributes.size * 2` must not be asked for `2.0`.
    ['int', operator, 'double', 'double'],
    ['double', operator, 'int', 'double'],
  ]),
  ['string', '+', 'string', 'string'],
  ['bytes', '+', 'bytes', 'bytes'],
  ['timestamp', '+', 'duration', 'timestamp'],
  ['duration', '+', 'timestamp', 'timestamp'],
  ['duration', '+', 'duration', 'duration'],
  ['timestamp', '-', 'duration', 'timestamp'],
  ['timestamp', '-', 'timestamp', 'duration'],
  ['duration', '-', 'duration', 'duration'],
];

const ORDERED: readonly CelType['kind'][] = ['bool', 'string', 'bytes', 'timestamp', 'duration', 'dyn'];

/** The type of what the operator returns; undefined where these types have no such operator. */
export function operatorType(operator: BinaryOperator, left: CelType, right: CelType): CelType | undefined {
  const isAlike = mayBe(left, right) || (isNumeric(left) && isNumeric(right));
  switch (operator) {
    case '==':
    case '!=':
      return isAlike || left.kind === 'null' || right.kind === 'null' ? BOOL : undefined;
    case '<':
    case '<=':
    case '>':
    case '>=':
      return isAlike && [left, right].every((type) => isNumeric(type) || ORDERED.includes(type.kind))
        ? BOOL
        : undefined;
    case 'in': {
      const { kind, item = DYN, key = DYN } = right;
      if (kind === 'dyn') return BOOL;
      const within = kind === 'list' ? item : kind === 'map' ? key : undefined;
      return within !== undefined && mayBe(left, within) ? BOOL : undefined;
    }
    default:
      return arithmeticType(operator, left, right);
  }
}

function arithmeticType(operator: Arithmetic, left: CelType, right: CelType): CelType | undefined {
  if (operator === '+' && left.kind === 'list' && right.kind === 'list')
    return listOf(join(left.item ?? DYN, right.item ?? DYN));
  const results = ARITHMETIC_TYPES.filter(
    ([first, op, second]) => op === operator && mayBe({ kind: first }, left) && mayBe({ kind: second }, right),
  ).map(([, , , result]) => result);
  const [first] = results;
  const mayBeList = operator === '+' && mayBe(left, listOf(DYN)) && mayBe(right, listOf(DYN));
  if (first === undefined) return mayBeList ? listOf(DYN) : undefined;
  return !mayBeList && results.every((result) => result === first) ? { kind: first } : DYN;
}

/** Applies the operator to two values; undefined if their types have no such operator. */
export function compute(operator: Arithmetic, a: Value, b: Value, steps: Steps): Value | undefined {
  if (typeof a === 'number') {
    if (typeof b === 'number') return ON_DOUBLES[operator](a, b);
    return typeof b === 'bigint' ? ON_DOUBLES[operator](a, Number(b)) : undefined;
  }
  if (typeof a === 'bigint') {
    if (typeof b === 'bigint') return onInts(operator, a, b);
    return typeof b === 'number' ? ON_DOUBLES[operator](Number(a), b) : undefined;
  }
  if (a instanceof Uint) return b instanceof Uint ? onUints(operator, a, b) : undefined;
  if (operator === '+') return added(a, b, steps);
  return operator === '-' ? subtracted(a, b) : undefined;
}

/** Takes its steps first: what doubles itself must not outgrow the memory. */
function added(a: Value, b: Value, steps: Steps): Value | undefined {
  if (typeof a === 'string') {
    if (typeof b !== 'string') return undefined;
    return take(steps, stepsToRead(a.length + b.length)) ?? a + b;
  }
  if (Array.isArray(a)) return Array.isArray(b) ? (take(steps, a.length + b.length) ?? [...a, ...b]) : undefined;
  if (a instanceof Timestamp) return b instanceof Duration ? laterBy(a, b) : undefined;
  if (a instanceof Duration) {
    if (b instanceof Timestamp) return laterBy(b, a);
    return b instanceof Duration ? sumOf(a, b) : undefined;
  }
  if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return undefined;
  return take(steps, a.length + b.length) ?? Uint8Array.from([...a, ...b]);
}

function subtracted(a: Value, b: Value): Value | undefined {
  if (a instanceof Duration) return b instanceof Duration ? differenceOf(a, b) : undefined;
  if (!(a instanceof Timestamp)) return undefined;
  if (b instanceof Duration) return earlierBy(a, b);
  return b instanceof Timestamp ? between(a, b) : undefined;
}

/** Elements of a list that are looked at in the time of one step. */
const ELEMENTS_PER_STEP = 4;

/** Whether it is an element of the list, or a key of the mapping; undefined where it can be neither. */
export function isIn(value: Value, within: Value, steps: Steps): boolean | Failure | undefined {
  if (within instanceof CelMap || isObject(within)) return lookUp(within, value) !== undefined;
  if (!Array.isArray(within)) return undefined;
  const stepsToCompare = typeof value === 'string' ? stepsToRead(value.length) : 0;
  const spent = take(steps, Math.ceil(within.length * (stepsToCompare + 1 / ELEMENTS_PER_STEP)));
  if (spent !== undefined) return spent;
  if (typeof value === 'string') return within.includes(value);
  for (let nth = 0; nth < within.length; nth += 1) if (areEqual(within[nth] as Value, value, steps)) return true;
  return false;
}
