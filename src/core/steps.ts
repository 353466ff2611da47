/** Work that may be long, in steps between which its caller may do something else. Each yield is the end of a step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** All of them at once. */
export function finish<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
