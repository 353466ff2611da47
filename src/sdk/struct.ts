/** JSON as google.protobuf.Struct, in the plain form that the protobuf library encodes. */
import { requireText } from './text.ts';
import type { JsonObject, JsonValue } from './types.ts';

export type Struct = { readonly fields: Readonly<Record<string, Value>> };
type Value =
  | { readonly nullValue: 0 }
  | { readonly numberValue: number }
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly structValue: Struct }
  | { readonly listValue: { readonly values: readonly Value[] } };

/**
 * Throws a TypeError that names the path of a value JSON cannot represent: a function, a bigint, a Date, a number that
 * is not finite, half a character, a circle.
 */
export function structOf(object: JsonObject, path = 'attributes', parents: readonly unknown[] = []): Struct {
  const kind = Object.prototype.toString.call(object).slice('[object '.length, -1);
  // A Date or a Map does not hold its content in properties, and would arrive empty.
  if (kind !== 'Object') throw new TypeError(`${path} must be a plain object, not ${kind}`);
  const fields: Record<string, Value> = Object.create(null) as Record<string, Value>;
  const within = enter(object, path, parents);
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    requireText(key, `a key of ${path}`);
    fields[key] = valueOf(value, `${path}.${key}`, within);
  }
  return { fields };
}

function valueOf(value: JsonValue | undefined, path: string, parents: readonly unknown[]): Value {
  switch (typeof value) {
    case 'string':
      requireText(value, path);
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${path} must be a finite number`);
      return { numberValue: value };
    case 'undefined':
      return { nullValue: 0 };
    case 'object':
      if (value === null) return { nullValue: 0 };
      if (Array.isArray(value)) return listOf(value as readonly JsonValue[], path, parents);
      return { structValue: structOf(value as JsonObject, path, parents) };
    default:
      throw new TypeError(`${path} is a ${typeof value}, which JSON cannot represent`);
  }
}

function listOf(list: readonly JsonValue[], path: string, parents: readonly unknown[]): Value {
  const within = enter(list, path, parents);
  return { listValue: { values: list.map((item, index) => valueOf(item, `${path}[${index}]`, within)) } };
}

function enter(value: unknown, path: string, parents: readonly unknown[]): readonly unknown[] {
  if (parents.includes(value)) throw new TypeError(`${path} contains itself`);
  return [...parents, value];
}
