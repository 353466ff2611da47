/** The evaluator inside the CEL library, which has no way to set what is set of it here. */
import type { Environment } from '@marcbachmann/cel-js';
import { assert } from '../base/result.ts';

export type RuntimeType = {
  readonly kind: string;
  readonly hasDynType: boolean;
  readonly keyType: RuntimeType;
  readonly valueType: RuntimeType;
};

/** The part of it that matters here. */
export type Evaluator = {
  debugType(value: unknown): RuntimeType;
  debugTypeDeep(value: unknown): RuntimeType;
  readonly registry: {
    getListType(item: RuntimeType): RuntimeType;
    getMapType(key: RuntimeType, value: RuntimeType): RuntimeType;
  };
  run(node: unknown, context: unknown): unknown;
  /**
   * Where an error need not be the outcome, it is returned: in `||` and `&&`, and in the rounds of `all` and `exists`.
   */
  tryEval(node: unknown, context: unknown): unknown;
};

const HOOK = 'captureEvaluator'; // not among the functions that conditions may call

/** To be called once per environment: macros are handed the evaluator. */
export function evaluatorOf(environment: Environment): Evaluator {
  let captured: Evaluator | undefined;
  environment.registerFunction(`${HOOK}(ast): bool`, () => ({
    typeCheck: (checker: { getType(name: string): unknown }) => checker.getType('bool'),
    evaluate: (own: Evaluator) => {
      captured = own;
      return true;
    },
  }));
  environment.evaluate(`${HOOK}(true)`, {});
  assert(
    captured !== undefined && typeof captured.debugTypeDeep === 'function' && typeof captured.tryEval === 'function',
    'the CEL library hands its evaluator to macros',
  );
  return captured;
}
