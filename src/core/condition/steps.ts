import { assert } from '../base/result.ts';
import type { Evaluator } from './evaluator.ts';
import type { FunctionCall } from './problem.ts';

/** Rounds of loops, and what takes as long; together some 10 to 20 ms. */
const MAX_CHECK_STEPS = 200_000;
/** An error takes so many times as long as a round without one. */
const STEPS_OF_FAILURE = 20;
/** A part of a text that is split up takes that fraction of a round. */
const PARTS_PER_STEP = 4;

const TOO_MANY =
  `together, the loops in all conditions of this check take more than ${MAX_CHECK_STEPS} steps, one for each value` +
  ` and ${STEPS_OF_FAILURE} for each error, such as a missing key; send less data, or have fewer rules with loops apply to its action and resource`;

const TOO_MUCH_MATCHING =
  `together, the matches() calls and loops in all conditions of this check take more than ${MAX_CHECK_STEPS} steps, about one for every 16 characters` +
  ' and more for hard patterns; send less data, simplify the patterns, or have fewer rules with matches() apply to its action and resource';

/** Conditions run one after the other, so one counter serves them all. `undefined`: none runs. */
let running: CheckSteps | undefined;

/** The steps that the conditions of one check have taken. */
export class CheckSteps {
  #taken = 0;
  /** Of these, for `matches`. */
  #takenForMatching = 0;

  reset(): void {
    this.#taken = 0;
    this.#takenForMatching = 0;
  }

  /**
   * What a condition evaluates to, or an error where the conditions have taken more steps than a check may, in
   * whichever order.
   */
  count<V, T>(evaluate: (variables: V) => T, variables: V): T | { readonly error: string } {
    if (this.isSpent) return this.#error;
    running = this;
    try {
      const outcome = evaluate(variables);
      return this.isSpent ? this.#error : outcome;
    } finally {
      running = undefined;
    }
  }

  take(steps: number): void {
    this.#taken += steps;
  }

  takeForMatching(steps: number): void {
    this.#taken += steps;
    this.#takenForMatching += steps;
  }

  get isSpent(): boolean {
    return this.#taken > MAX_CHECK_STEPS;
  }

  get #error(): { readonly error: string } {
    return { error: this.#takenForMatching > this.#taken / 2 ? TOO_MUCH_MATCHING : TOO_MANY };
  }
}

type Evaluate = (evaluator: unknown, node: unknown, context: unknown) => unknown;
/**
 * The part of the library's syntax tree that matters here: a loop is expanded into a node that has a step for each of
 * its rounds.
 */
type Node = {
  readonly meta: { readonly evaluate: Evaluate; readonly alternate?: { readonly args: { readonly step: Node } } };
  setMeta(key: 'evaluate', evaluate: Evaluate): unknown;
};

/** Makes the errors count that loops go on after. */
export function countFailures(evaluator: Evaluator): void {
  evaluator.tryEval = (node, context) => {
    try {
      return evaluator.run(node, context);
    } catch (error) {
      running?.take(STEPS_OF_FAILURE);
      return error;
    }
  };
}

/** Makes the calls of a condition that is checked count. */
export function countSteps(loops: readonly FunctionCall[], splits: readonly FunctionCall[]): void {
  for (const loop of loops) {
    const step = (loop as unknown as Node).meta.alternate?.args.step;
    assert(step !== undefined, 'the CEL library expands a loop into a step for each round');
    step.setMeta('evaluate', countedRound(step.meta.evaluate));
  }
  for (const split of splits as readonly unknown[] as readonly Node[])
    split.setMeta('evaluate', countedSplit(split.meta.evaluate));
}

/** Thrown by each round that is left when the steps are spent: no other error is as cheap. */
const SPENT = new Error(TOO_MANY);

const countedRound =
  (evaluate: Evaluate): Evaluate =>
  (evaluator, node, context) => {
    running!.take(1);
    if (running!.isSpent) throw SPENT;
    return evaluate(evaluator, node, context);
  };

const countedSplit =
  (evaluate: Evaluate): Evaluate =>
  (evaluator, node, context) => {
    const parts = evaluate(evaluator, node, context) as readonly string[];
    running!.take(Math.ceil(parts.length / PARTS_PER_STEP));
    return parts;
  };

/** To be called as the work of `matches` is done; throws where the steps are spent. */
export function takeForMatching(steps: number): void {
  running?.takeForMatching(steps);
  if (running?.isSpent === true) throw SPENT;
}
