/** A part of an expression that is refused, and where it begins, in characters. */
export type ConditionProblem = { readonly offset: number; readonly problem: string };

/** Thrown while an expression is compiled, and turned into a value by `compileCondition`. */
export class ProblemError extends Error {
  readonly offset: number;

  constructor(offset: number, problem: string) {
    super(problem);
    this.offset = offset;
  }
}
