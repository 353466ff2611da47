import type { ASTNode } from '@marcbachmann/cel-js';

/** A part of the expression that is refused, and where it begins, in characters. */
export type ConditionProblem = { readonly offset: number; readonly problem: string };

export type NodeOf<Op extends ASTNode['op']> = Extract<ASTNode, { op: Op }>;

/** A function of this gateway: its signature in CEL, and what it does. */
export type OwnFunction = readonly [signature: string, run: (...args: never[]) => unknown];

/** A call of a function that is not the library's: see `isOwn`. */
export type FunctionCall = NodeOf<'call' | 'rcall'>;
