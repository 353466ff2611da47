/** The arguments of a function as the attributes of an action, and back with what obligations have changed. */
import { wellFormed } from './text.ts';
import type { JsonObject, JsonValue } from './types.ts';

/** The gateway takes 32 levels. */
const MAX_DEPTH = 30;

/** An object argument's members; none of any other argument, and of a class or a list only what JSON makes of it. */
export function attributesOf(argument: unknown): JsonObject {
  const json = jsonOf(argument, 0, []);
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonObject) : {};
}

/** Converts a value to JSON; parts that JSON cannot hold become text. */
function jsonOf(value: unknown, depth: number, around: readonly unknown[]): JsonValue | undefined {
  switch (typeof value) {
    case 'string':
      return wellFormed(value);
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return String(value);
    case 'object':
      return value === null ? null : jsonOfObject(value, depth, around);
    default:
      return undefined;
  }
}

function jsonOfObject(value: object, depth: number, around: readonly unknown[]): JsonValue | undefined {
  if (depth > MAX_DEPTH || around.includes(value)) return '...';
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (value instanceof AbortSignal) return undefined;
  const within = [...around, value];
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === 'function') return jsonOf(toJSON.call(value) as unknown, depth + 1, within);
  if (value instanceof Map) return jsonOf(Object.fromEntries(value), depth + 1, within);
  if (value instanceof Set || Array.isArray(value))
    return [...(value as Iterable<unknown>)].map((item) => jsonOf(item, depth + 1, within) ?? null);
  const members: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
  for (const [key, member] of Object.entries(value)) {
    const json = jsonOf(member, depth + 1, within);
    if (json !== undefined) members[wellFormed(key)] = json;
  }
  return { ...members };
}

/**
 * The argument with what obligations have changed of its attributes; the rest stays as it was, also what JSON cannot
 * hold. Throws a TypeError where what they change cannot be put back.
 */
export function restored<T>(argument: T, sent: JsonObject, edited: JsonObject): T {
  return merged(argument, sent, edited, 'the argument') as T;
}

function merged(original: unknown, sent: unknown, edited: unknown, path: string): unknown {
  if (isSame(sent, edited)) return original;
  if (isPlain(original) && isPlain(sent) && isPlain(edited)) {
    const result: Record<string, unknown> = { ...original };
    for (const key of Object.keys(sent)) if (!Object.hasOwn(edited, key)) delete result[key];
    for (const [key, value] of Object.entries(edited))
      define(result, key, Object.hasOwn(sent, key) ? merged(original[key], sent[key], value, `${path}.${key}`) : value);
    return result;
  }
  if (!isJson(original)) throw new TypeError(`an obligation changes ${path}, which is not plain JSON`);
  return edited;
}

/** `__proto__` is a name like any other. */
const define = (object: object, key: string, value: unknown): unknown =>
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Replaced values are lost: only those that came as JSON may be replaced. */
const isJson = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  ['string', 'number', 'boolean'].includes(typeof value) ||
  (Array.isArray(value) ? value.every(isJson) : isPlain(value) && Object.values(value).every(isJson));
