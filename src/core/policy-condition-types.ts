/**
 * The CEL library names the type of an operand to its full depth (`list<map<string, list<…>>>`) and keeps every type it has ever
 * met, with the operators found for it. Agents choose the shape of their attributes, so they could fill the gateway's memory
 * with types. Here the name ends after two levels, below which everything is `dyn`. So there are only a few dozen types.
 */
import type { Environment } from '@marcbachmann/cel-js';
import { assert } from './result.ts';

const MAX_TYPE_DEPTH = 2;

/** The part of the library's evaluator that a macro is handed and that matters here. */
type RuntimeType = { readonly kind: string; readonly hasDynType: boolean; readonly keyType: RuntimeType; readonly valueType: RuntimeType };
type Evaluator = {
  debugType(value: unknown): RuntimeType;
  debugTypeDeep(value: unknown): RuntimeType;
  readonly registry: { getListType(item: RuntimeType): RuntimeType; getMapType(key: RuntimeType, value: RuntimeType): RuntimeType };
};

const HOOK = 'captureEvaluator'; // not among the functions that conditions may call

/** To be called once, after everything else is registered. */
export function boundRuntimeTypes(environment: Environment): void {
  let evaluator: Evaluator | undefined;
  environment.registerFunction(`${HOOK}(ast): bool`, () => ({
    typeCheck: (checker: { getType(name: string): unknown }) => checker.getType('bool'),
    evaluate: (own: Evaluator) => {
      evaluator = own;
      return true;
    },
  }));
  environment.evaluate(`${HOOK}(true)`, {});
  assert(evaluator !== undefined && typeof evaluator.debugTypeDeep === 'function', 'the CEL library hands its evaluator to macros');
  const bounded = evaluator;
  bounded.debugTypeDeep = (value) => typeOf(bounded, value, MAX_TYPE_DEPTH);
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
