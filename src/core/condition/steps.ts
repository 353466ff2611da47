/**
 * How much work the conditions of one check may be, all together: while they run, every other check waits. Each of them
 * ends by itself, but nested loops over what an agent has sent take long, and so do thousands of rules. All work is
 * therefore counted as it is done, in steps of some 10 ns: one for each operator, call and value of the expression,
 * again in each round of a loop, one for 8 characters that are read, and what `matches` does. A pattern does not repeat
 * work on earlier texts, so near the limit a check may be denied once and allowed later.
 */
import { Failure, type Steps } from './values.ts';

export const MAX_STEPS = 1_000_000;

/** For conditions after whose end nothing is left, in whichever order they ran. */
export const TOO_MANY_STEPS =
  `the conditions of all rules for this check take more than ${MAX_STEPS} steps together: one for each operator, each` +
  ' value that a loop comes to and each 8 characters of text, and more for matches(); send less data, or have fewer' +
  ' rules with loops or matches() apply to its action and resource';

/** The value of what is no longer evaluated. */
export const SPENT = new Failure(TOO_MANY_STEPS);

/** Takes steps before the work that they stand for; undefined where as many are left. */
export function take(steps: Steps, count: number): Failure | undefined {
  steps.left -= count;
  return steps.left < 0 ? SPENT : undefined;
}
