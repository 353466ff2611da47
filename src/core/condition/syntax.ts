/** The syntax tree of a condition. */
import type { Uint } from './values.ts';

export type BinaryOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | '+' | '-' | '*' | '/' | '%';

/** An element of a list; with `?` before it, it is left out where it has no value. */
export type Element = { readonly value: Node; readonly isOptional: boolean };
export type Entry = Element & { readonly key: Node };

type At = {
  /** The position of its start, in characters. */
  readonly start: number;
};
export type Literal = At & {
  readonly op: 'literal';
  readonly value: boolean | number | bigint | string | null | Uint8Array | Uint;
};
export type Name = At & { readonly op: 'name'; readonly name: string };
/** `target.field`, or `target.?field`. */
export type Select = At & {
  readonly op: 'select';
  readonly target: Node;
  readonly field: string;
  readonly fieldStart: number;
  readonly isOptional: boolean;
};
/** `target[index]`, or `target[?index]`. */
export type Index = At & {
  readonly op: 'index';
  readonly target: Node;
  readonly index: Node;
  readonly isOptional: boolean;
};
/** `name(args)`, or `target.name(args)`. */
export type Call = At & {
  readonly op: 'call';
  readonly name: string;
  readonly target: Node | undefined;
  readonly args: readonly Node[];
};
export type List = At & { readonly op: 'list'; readonly elements: readonly Element[] };
export type Mapping = At & { readonly op: 'map'; readonly entries: readonly Entry[] };
export type Not = At & { readonly op: '!'; readonly operand: Node };
export type Negation = At & { readonly op: 'negate'; readonly operand: Node };
export type Logical = At & { readonly op: '&&' | '||'; readonly left: Node; readonly right: Node };
export type Binary = At & { readonly op: BinaryOperator; readonly left: Node; readonly right: Node };
export type Choice = At & { readonly op: '?:'; readonly condition: Node; readonly yes: Node; readonly no: Node };

export type Node = Literal | Name | Select | Index | Call | List | Mapping | Not | Negation | Logical | Binary | Choice;

/** `google.protobuf.Timestamp` of a chain of selections; undefined for any other node. */
export function dottedName(node: Node): string | undefined {
  if (node.op === 'name') return node.name;
  if (node.op !== 'select' || node.isOptional) return undefined;
  const target = dottedName(node.target);
  return target === undefined ? undefined : `${target}.${node.field}`;
}
