/**
 * The values of conditions. Booleans, doubles, strings, null and lists are JavaScript's own, an int is a bigint, and a
 * mapping that was sent is the object that JSON has made. All others have a class here.
 */
import { assert } from '../base/result.ts';

/** How many steps a check has left; see `steps.ts`. */
export type Steps = { left: number };

export type Value =
  | boolean
  | number
  | bigint
  | string
  | null
  | Uint8Array
  | readonly Value[]
  | { readonly [key: string]: Value }
  | Special;

/** Distinguishes values with a class of their own from mappings that were sent, whose keys may be anything. */
export abstract class Special {
  abstract get kind(): Kind | 'failure';
}

/**
 * The value of what has failed. Errors are values: an agent chooses what it sends, and to throw is many times as
 * expensive as any other outcome.
 */
export class Failure extends Special {
  readonly reason: string;

  constructor(reason: string) {
    super();
    this.reason = reason;
  }

  get kind(): 'failure' {
    return 'failure';
  }
}

/** A value around another one. */
abstract class Wrapper<T> extends Special {
  readonly value: T;

  constructor(value: T) {
    super();
    this.value = value;
  }
}

export class Uint extends Wrapper<bigint> {
  get kind(): 'uint' {
    return 'uint';
  }
}

abstract class Nanoseconds extends Special {
  readonly ns: bigint;

  constructor(ns: bigint) {
    super();
    this.ns = ns;
  }
}

/** Nanoseconds since 1970. */
export class Timestamp extends Nanoseconds {
  get kind(): 'timestamp' {
    return 'timestamp';
  }
}

export class Duration extends Nanoseconds {
  get kind(): 'duration' {
    return 'duration';
  }
}

/** The value of `type(…)`: the name of a type. */
export class TypeValue extends Wrapper<string> {
  get kind(): 'type' {
    return 'type';
  }
}

/** Wrapper undefined, it has no value. */
export class Optional extends Wrapper<Value | undefined> {
  get kind(): 'optional' {
    return 'optional';
  }
}

export const NO_VALUE = new Optional(undefined);

type MapKey = string | boolean | bigint;

/** A mapping that was written in the expression. Numbers that are equal are the same key, whatever their types. */
export class CelMap extends Special {
  readonly #entries = new Map<MapKey, readonly [key: Value, value: Value]>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    const known = keyOf(key);
    return known === undefined ? undefined : this.#entries.get(known)?.[1];
  }

  /** False where the key is there already. */
  add(key: Value, value: Value): boolean {
    const known = keyOf(key);
    if (known === undefined || this.#entries.has(known)) return false;
    this.#entries.set(known, [key, value]);
    return true;
  }

  entries(): Iterable<readonly [Value, Value]> {
    return this.#entries.values();
  }

  get kind(): 'map' {
    return 'map';
  }
}

function keyOf(key: Value): MapKey | undefined {
  if (typeof key === 'string' || typeof key === 'boolean' || typeof key === 'bigint') return key;
  if (typeof key === 'number') return Number.isInteger(key) ? BigInt(key) : undefined;
  return key instanceof Uint ? key.value : undefined;
}

export const KINDS = [
  'bool',
  'int',
  'uint',
  'double',
  'string',
  'bytes',
  'null',
  'timestamp',
  'duration',
  'type',
  'list',
  'map',
  'optional',
] as const;
export type Kind = (typeof KINDS)[number];

export function kindOf(value: Value): Kind {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int';
    default:
      return kindOfObject(value);
  }
}

function kindOfObject(value: Value): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Uint8Array) return 'bytes';
  if (!(value instanceof Special)) return 'map';
  assert(value.kind !== 'failure', 'what has failed is no operand');
  return value.kind;
}

type JsonObject = { readonly [key: string]: Value };

/** A mapping as JSON has made it. */
export const isObject = (value: Value): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Special) &&
  !(value instanceof Uint8Array);

/** The value of a key; undefined where the mapping does not have it. */
export function lookUp(mapping: JsonObject | CelMap, key: Value): Value | undefined {
  if (mapping instanceof CelMap) return mapping.get(key);
  return typeof key === 'string' && Object.hasOwn(mapping, key) ? mapping[key] : undefined;
}

export const sizeOfMap = (mapping: JsonObject | CelMap): number =>
  mapping instanceof CelMap ? mapping.size : Object.keys(mapping).length;

export const entriesOf = (mapping: JsonObject | CelMap): Iterable<readonly [Value, Value]> =>
  mapping instanceof CelMap ? mapping.entries() : Object.entries(mapping);

/** A number of any type as JavaScript compares it, which is by its exact value; undefined for all else. */
export function numberOf(value: Value): number | bigint | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return value instanceof Uint ? value.value : undefined;
}

/** Eight characters of text, or bytes, are read in the time of one step. */
export const stepsToRead = (length: number): number => length >>> 3;

/** To list the keys of a mapping takes so many steps for each. */
export const STEPS_OF_KEY = 16;

/** Numbers are equal by their value, whatever their types. Values of other types that differ are not equal. */
export function areEqual(a: Value, b: Value, steps: Steps): boolean {
  if (typeof a === 'string') {
    steps.left -= stepsToRead(a.length);
    return a === b;
  }
  if (typeof a !== 'object' || a === null) {
    if (a === b) return true;
    const [left, right] = [numberOf(a), numberOf(b)];
    // biome-ignore lint/suspicious/noDoubleEquals: a double and an int may be the same number
    return left !== undefined && right !== undefined && left == right;
  }
  return areEqualObjects(a, b, steps);
}

function areEqualObjects(a: Value, b: Value, steps: Steps): boolean {
  steps.left -= 1;
  if (steps.left < 0) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let nth = 0; nth < a.length; nth += 1) if (!areEqual(a[nth], b[nth], steps)) return false;
    return true;
  }
  if (a instanceof CelMap || isObject(a)) return (b instanceof CelMap || isObject(b)) && areEqualMaps(a, b, steps);
  if (a instanceof Uint) {
    const right = numberOf(b);
    // biome-ignore lint/suspicious/noDoubleEquals: as above
    return right !== undefined && a.value == right;
  }
  if (a instanceof Timestamp) return b instanceof Timestamp && a.ns === b.ns;
  if (a instanceof Duration) return b instanceof Duration && a.ns === b.ns;
  if (a instanceof TypeValue) return b instanceof TypeValue && a.value === b.value;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b, steps) === 0;
  if (!(a instanceof Optional && b instanceof Optional)) return false;
  if (a.value === undefined || b.value === undefined) return a.value === b.value;
  return areEqual(a.value, b.value, steps);
}

function areEqualMaps(a: JsonObject | CelMap, b: JsonObject | CelMap, steps: Steps): boolean {
  const size = sizeOfMap(a);
  steps.left -= 2 * STEPS_OF_KEY * size;
  if (steps.left < 0) return false;
  if (size !== sizeOfMap(b)) return false;
  for (const [key, value] of entriesOf(a)) {
    const other = lookUp(b, key);
    if (other === undefined || !areEqual(value, other, steps)) return false;
  }
  return true;
}

/** Less than, equal to or more than 0; NaN where a number is none; undefined where the two have no order. */
export function compare(a: Value, b: Value, steps: Steps): number | undefined {
  if (typeof a === 'string') return typeof b === 'string' ? compareTexts(a, b, steps) : undefined;
  const [left, right] = [numberOf(a), numberOf(b)];
  if (left !== undefined && right !== undefined) return left < right ? -1 : left > right ? 1 : left >= right ? 0 : NaN;
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (a instanceof Timestamp && b instanceof Timestamp) return a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0;
  if (a instanceof Duration && b instanceof Duration) return a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0;
  return a instanceof Uint8Array && b instanceof Uint8Array ? compareBytes(a, b, steps) : undefined;
}

/**
 * By code points. JavaScript orders by units of UTF-16, where a surrogate comes before the letters U+E000 to U+FFFF.
 */
function compareTexts(a: string, b: string, steps: Steps): number {
  steps.left -= stepsToRead(Math.min(a.length, b.length));
  if (a === b) return 0;
  const isLess = a < b;
  if (!/[\ud800-\udfff]/.test(a) && !/[\ud800-\udfff]/.test(b)) return isLess ? -1 : 1;
  let at = 0;
  while (a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
  if (Number.isNaN(left) || Number.isNaN(right)) return isLess ? -1 : 1;
  const order = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);
  return order(left) - order(right);
}

function compareBytes(a: Uint8Array, b: Uint8Array, steps: Steps): number {
  steps.left -= stepsToRead(Math.min(a.length, b.length));
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
