/** Puts a check before a function, as before a tool that a model calls. */
import { attributesOf, restored } from './arguments.ts';
import { type KeysOf, requireKnownKeys } from './known-keys.ts';
import { OBLIGATION_TYPES } from './obligations.ts';
import type { Op } from './op.ts';
import { requireText } from './text.ts';
import type { Action, JsonObject, RunOptions } from './types.ts';

/** Facts about the calls of a guarded function that are known beforehand. */
export type GuardOptions = RunOptions & {
  /** Default `tool.call`. */
  readonly action?: string | undefined;
  /** 0 to 1,000,000 US dollars, reserved while a call runs. */
  readonly estimatedCostUsd?: number | undefined;
  /** In place of the members of the first argument, which are then left as they are. */
  readonly attributes?: JsonObject | undefined;
  /** First half of the ids of operations. Default: that of the operation around the call, else a new one. */
  readonly traceId?: string | undefined;
};

const OPTIONS: KeysOf<GuardOptions> = {
  action: true,
  estimatedCostUsd: true,
  attributes: true,
  traceId: true,
  approvals: true,
  signal: true,
};

/** `run` of the client. */
export type Run = <T>(action: Action, body: (op: Op) => T | Promise<T>, options: RunOptions) => Promise<T>;

/** A function that asks before each call. Throws a TypeError for a wrong option. */
export function guarded<Args extends readonly unknown[], Result>(
  run: Run,
  name: string,
  fn: (...args: Args) => Result,
  options: GuardOptions,
): (...args: Args) => Promise<Awaited<Result>> {
  requireText(name, 'the name of a guarded function');
  if (typeof fn !== 'function') throw new TypeError('guard needs the function that it guards');
  requireKnownKeys(options, 'the options of guard', OPTIONS);
  const { action = 'tool.call', attributes: fixed, estimatedCostUsd, traceId, approvals, signal } = options;
  return function (this: unknown, ...args: Args): Promise<Awaited<Result>> {
    const [first, ...rest] = args;
    const attributes = fixed ?? attributesOf(first);
    const asked = { action, resource: name, attributes, estimatedCostUsd, traceId };
    const call = (...given: readonly unknown[]) => Reflect.apply(fn, this, given) as Awaited<Result>;
    // Fixed attributes are not what the function acts on, so that what changes them cannot be met.
    return fixed === undefined
      ? run(
          { ...asked, supportedObligations: OBLIGATION_TYPES },
          (op) => (args.length === 0 ? call() : call(restored(first, attributes, op.attributes ?? {}), ...rest)),
          { approvals, signal },
        )
      : run(asked, () => call(...args), { approvals, signal });
  };
}
