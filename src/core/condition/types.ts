/**
 * The CEL library names the type of an operand to its full depth (`list<map<string, list<…>>>`) and keeps every type it
 * has ever met, with the operators found for it. Agents choose the shape of their attributes, so they could fill the
 * gateway's memory with types. Here the name ends after two levels, below which everything is `dyn`. So there are only
 * a few dozen types.
 */
import type { Evaluator, RuntimeType } from './evaluator.ts';

const MAX_TYPE_DEPTH = 2;

export function boundRuntimeTypes(evaluator: Evaluator): void {
  evaluator.debugTypeDeep = (value) => typeOf(evaluator, value, MAX_TYPE_DEPTH);
}

function typeOf(evaluator: Evaluator, value: unknown, depth: number): RuntimeType {
  const type = evaluator.debugType(value);
  if (depth === 0 || (type.kind !== 'list' && type.kind !== 'map')) return type;
  const first = firstEntry(value as object);
  if (first === undefined) return type;
  const inner = (known: RuntimeType, part: unknown) => (known.hasDynType ? typeOf(evaluator, part, depth - 1) : known);
  if (type.kind === 'list') return evaluator.registry.getListType(typeOf(evaluator, first[1], depth - 1));
  return evaluator.registry.getMapType(inner(type.keyType, first[0]), inner(type.valueType, first[1]));
}

function firstEntry(value: object): readonly [unknown, unknown] | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : [0, value[0]];
  if (value instanceof Map) return value.entries().next().value as [unknown, unknown] | undefined;
  for (const key in value) return [key, (value as Readonly<Record<string, unknown>>)[key]];
  return undefined;
}
