/** Compiles the parts of a pattern to instructions, of which any number may hold at a time. */
import { type Assertion, type CharClass, type Part, Unsupported } from './pattern-syntax.ts';

export type Instruction =
  | { readonly op: 'char'; readonly test: number; readonly next: number }
  | { readonly op: 'assert'; readonly assertion: Assertion; readonly next: number }
  | { readonly op: 'split'; readonly next: number; readonly other: number }
  | { readonly op: 'found' };

export type Program = {
  readonly instructions: readonly Instruction[];
  readonly start: number;
  /** Tests that `char` instructions apply to a character. */
  readonly tests: readonly ((character: string) => boolean)[];
};

/** An empty repetition, such as `(a{1000}){1000}`, may be far larger than what the syntax has counted. */
const MAX_INSTRUCTIONS = 4_000;

export function compileParts(part: Part): Program {
  const instructions: Instruction[] = [{ op: 'found' }];
  const tests: ((character: string) => boolean)[] = [];
  const known = new Map<string, number>();

  const add = (instruction: Instruction): number => {
    if (instructions.length >= MAX_INSTRUCTIONS) throw new Unsupported('so large a pattern; smaller repeat counts are');
    return instructions.push(instruction) - 1;
  };
  const testOf = ({ text, isNegated, ignoresCase }: CharClass): number => {
    const source = `${isNegated ? '[^' : '['}${text}]`;
    const key = `${ignoresCase}${source}`;
    const at = known.get(key);
    if (at !== undefined) return at;
    const expression = new RegExp(source, ignoresCase ? 'iu' : 'u');
    known.set(key, tests.length);
    return tests.push((character) => expression.test(character)) - 1;
  };
  /** The instruction at which the part begins, after which it goes on at `next`. */
  const compile = (each: Part, next: number): number => {
    switch (each.kind) {
      case 'class':
        return add({ op: 'char', test: testOf(each.chars), next });
      case 'assert':
        return add({ op: 'assert', assertion: each.assertion, next });
      case 'all':
        return each.parts.reduceRight((following, one) => compile(one, following), next);
      case 'any':
        return each.parts
          .map((one) => compile(one, next))
          .reduceRight((other, first) => add({ op: 'split', next: first, other }));
      case 'repeat':
        return repeat(each.part, each.least, each.most, next);
    }
  };
  const repeat = (each: Part, least: number, most: number, next: number): number => {
    let begin = next;
    if (most === Infinity) {
      const loop = add({ op: 'split', next, other: next });
      instructions[loop] = { op: 'split', next: compile(each, loop), other: next };
      begin = loop;
    } else
      for (let nth = least; nth < most; nth += 1) begin = add({ op: 'split', next: compile(each, begin), other: next });
    for (let nth = 0; nth < least; nth += 1) begin = compile(each, begin);
    return begin;
  };
  const start = compile(part, 0);
  return { instructions, start, tests };
}
