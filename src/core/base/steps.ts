/** Long work, cut into steps between which the caller may do something else. Each `yield` ends a step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does all steps at once, and returns the result. */
export function finish<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
