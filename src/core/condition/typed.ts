/** A condition whose types are known, and whose names stand for something: what `check.ts` makes of a syntax tree. */
import type { Overload } from './functions.ts';
import type { Pattern } from './matches.ts';
import type { BinaryOperator } from './syntax.ts';
import type { CelType } from './types.ts';
import type { Value } from './values.ts';

export type Variable = 'agent' | 'action' | 'resource' | 'attributes' | 'caller' | 'estimated_cost_usd';
export type LoopKind = 'all' | 'exists' | 'exists_one' | 'filter' | 'map' | 'transformMap';

type Of<Op extends string, Parts> = { readonly op: Op; readonly type: CelType } & Readonly<Parts>;
type Item = { readonly value: Typed; readonly isOptional: boolean };

export type Loop = Of<
  'loop',
  {
    kind: LoopKind;
    name: string;
    over: Typed;
    /** The first slot of the variables: one, or two that follow each other. */
    slot: number;
    hasTwo: boolean;
    predicate: Typed | undefined;
    transform: Typed | undefined;
  }
>;
export type TypedCall = Of<
  'call',
  { name: string; isMethod: boolean; args: readonly Typed[]; overloads: readonly Overload[] }
>;
export type TypedBinary = Of<'binary', { operator: BinaryOperator; left: Typed; right: Typed }>;

export type Typed =
  | Of<'constant', { value: Value }>
  | Of<'variable', { name: Variable }>
  | Of<'local', { slot: number }>
  | Of<'select', { target: Typed; field: string; isOptional: boolean }>
  | Of<'has', { target: Typed; field: string }>
  | Of<'index', { target: Typed; index: Typed; isOptional: boolean }>
  | TypedCall
  | Of<'matches', { text: Typed; pattern: Pattern }>
  | Loop
  /** `target.optMap(x, body)`, and `optFlatMap`, whose body is optional itself. */
  | Of<'optMap', { target: Typed; slot: number; body: Typed; isFlat: boolean }>
  | Of<'list', { elements: readonly Item[] }>
  | Of<'map', { entries: readonly (Item & { readonly key: Typed })[] }>
  | Of<'not' | 'negate', { operand: Typed }>
  | Of<'and' | 'or', { left: Typed; right: Typed }>
  | TypedBinary
  | Of<'choice', { condition: Typed; yes: Typed; no: Typed }>;

/** Creating the lists, mappings and numbers of a round takes longer than an operator. */
const STEPS_OF_LITERAL = 16;
const STEPS_OF_CALL = 4;

/** The steps of all operators, calls and values, without those in the bodies of loops: they count in each round. */
export function stepsOf(node: Typed): number {
  let count = node.op === 'map' || node.op === 'list' ? STEPS_OF_LITERAL : node.op === 'call' ? STEPS_OF_CALL : 1;
  for (const part of partsOf(node)) count += stepsOf(part);
  return count;
}

function partsOf(node: Typed): readonly Typed[] {
  switch (node.op) {
    case 'constant':
    case 'variable':
    case 'local':
      return [];
    case 'select':
    case 'has':
      return [node.target];
    case 'index':
      return [node.target, node.index];
    case 'call':
      return node.args;
    case 'matches':
      return [node.text];
    case 'loop':
      return [node.over];
    case 'optMap':
      return [node.target, node.body];
    case 'list':
      return node.elements.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'not':
    case 'negate':
      return [node.operand];
    case 'and':
    case 'or':
    case 'binary':
      return [node.left, node.right];
    case 'choice':
      return [node.condition, node.yes, node.no];
  }
}
