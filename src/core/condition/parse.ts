/** Parses an expression into its syntax tree: the grammar of the language definition of CEL, without messages. */
import { ProblemError } from './problem.ts';
import type { BinaryOperator, Element, Entry, Node } from './syntax.ts';
import { type Token, tokensOf } from './tokens.ts';

const MAX_NODES = 1000;
const MAX_DEPTH = 48;

/** No variable can have such a name. */
const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
);

/** Each row binds tighter than the one before. */
const PRECEDENCE: readonly (readonly BinaryOperator[])[] = [
  ['<', '<=', '>=', '>', '==', '!=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** Throws a `ProblemError` for what is not an expression. */
export function parse(source: string): Node {
  return new Parser(tokensOf(source)).whole();
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #nodes = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Node {
    const node = this.#expression();
    if (this.#next.kind !== 'end') throw this.#unexpected();
    return node;
  }

  get #next(): Token {
    return this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]!;
  }

  #is(text: string): boolean {
    const token = this.#next;
    return token.kind === 'sign' ? token.text === text : isWord(token, text);
  }

  #accept(text: string): boolean {
    const found = this.#is(text);
    if (found) this.#at += 1;
    return found;
  }

  #require(text: string): void {
    if (!this.#accept(text)) throw this.#unexpected(text);
  }

  #node<N extends Node>(node: N): N {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES)
      throw new ProblemError(node.start, `this expression has more than ${MAX_NODES} operators, calls and values`);
    return node;
  }

  #deeper<T>(parsed: () => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new ProblemError(this.#next.start, `this is nested more than ${MAX_DEPTH} deep`);
    const result = parsed();
    this.#depth -= 1;
    return result;
  }

  #expression(): Node {
    return this.#deeper(() => {
      const condition = this.#or();
      if (!this.#accept('?')) return condition;
      const yes = this.#or();
      this.#require(':');
      return this.#node({ op: '?:', start: condition.start, condition, yes, no: this.#expression() });
    });
  }

  #or(): Node {
    let left = this.#and();
    while (this.#accept('||')) left = this.#node({ op: '||', start: left.start, left, right: this.#and() });
    return left;
  }

  #and(): Node {
    let left = this.#binary(0);
    while (this.#accept('&&')) left = this.#node({ op: '&&', start: left.start, left, right: this.#binary(0) });
    return left;
  }

  #binary(level: number): Node {
    const operators = PRECEDENCE[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const op = operators.find((operator) => this.#is(operator));
      if (op === undefined) return left;
      this.#at += 1;
      left = this.#node({ op, start: left.start, left, right: this.#binary(level + 1) });
    }
  }

  #unary(): Node {
    const { start } = this.#next;
    if (this.#accept('!')) return this.#node({ op: '!', start, operand: this.#deeper(() => this.#unary()) });
    if (!this.#accept('-')) return this.#postfix();
    const number = this.#next;
    // The sign belongs to the number: the least of 64 bits has no positive counterpart.
    if (number.kind === 'literal' && (typeof number.value === 'bigint' || typeof number.value === 'number')) {
      this.#at += 1;
      return this.#postfixOf(this.#node({ op: 'literal', start, value: -number.value }));
    }
    return this.#node({ op: 'negate', start, operand: this.#deeper(() => this.#unary()) });
  }

  #postfix(): Node {
    return this.#postfixOf(this.#primary());
  }

  #postfixOf(first: Node): Node {
    let node = first;
    for (;;) {
      const { start } = node;
      if (this.#accept('.')) {
        const isOptional = this.#accept('?');
        const name = this.#next;
        if (name.kind !== 'name' || isWord(name, 'in')) throw this.#unexpected('a name');
        this.#at += 1;
        node =
          !isOptional && !name.isQuoted && this.#accept('(')
            ? this.#node({ op: 'call', start, name: name.text, target: node, args: this.#args() })
            : this.#node({
                op: 'select',
                start,
                target: node,
                field: name.text,
                fieldStart: name.start,
                isOptional,
              });
      } else if (this.#accept('[')) {
        const isOptional = this.#accept('?');
        node = this.#node({ op: 'index', start, target: node, index: this.#expression(), isOptional });
        this.#require(']');
      } else return node;
    }
  }

  #args(): readonly Node[] {
    return this.#listed(')', () => this.#expression());
  }

  #listed<T>(closing: string, item: () => T): readonly T[] {
    const items: T[] = [];
    while (!this.#is(closing)) {
      items.push(item());
      if (!this.#accept(',')) break;
    }
    this.#require(closing);
    return items;
  }

  #primary(): Node {
    const token = this.#next;
    const { start } = token;
    if (token.kind === 'literal') {
      if (token.value === 2n ** 63n) throw new ProblemError(start, 'this number is too large for an int of 64 bits');
      this.#at += 1;
      return this.#node({ op: 'literal', start, value: token.value });
    }
    if (this.#accept('(')) {
      const node = this.#expression();
      this.#require(')');
      return node;
    }
    if (this.#accept('[')) return this.#node({ op: 'list', start, elements: this.#listed(']', () => this.#element()) });
    if (this.#accept('{')) return this.#node({ op: 'map', start, entries: this.#listed('}', () => this.#entry()) });
    this.#accept('.'); // `.name` is the name from the root on, and every name here is
    return this.#name();
  }

  #element(): Element {
    const isOptional = this.#accept('?');
    return { value: this.#expression(), isOptional };
  }

  #entry(): Entry {
    const isOptional = this.#accept('?');
    const key = this.#expression();
    this.#require(':');
    return { key, value: this.#expression(), isOptional };
  }

  #name(): Node {
    const token = this.#next;
    const { start } = token;
    if (token.kind !== 'name' || token.isQuoted || token.text === 'in') throw this.#unexpected();
    this.#at += 1;
    const name = token.text;
    if (name === 'true' || name === 'false') return this.#node({ op: 'literal', start, value: name === 'true' });
    if (name === 'null') return this.#node({ op: 'literal', start, value: null });
    if (RESERVED.has(name)) throw new ProblemError(start, `Reserved identifier: ${name}`);
    return this.#accept('(')
      ? this.#node({ op: 'call', start, name, target: undefined, args: this.#args() })
      : this.#node({ op: 'name', start, name });
  }

  /** Suggests the author's likely intention, if it can be guessed. */
  #unexpected(wanted?: string): ProblemError {
    const token = this.#next;
    const before = this.#tokens[this.#at - 1];
    if (this.#is('{') && before?.kind === 'name')
      return new ProblemError(before.start, 'conditions cannot make protobuf messages');
    const isAfterValue =
      before !== undefined && (before.kind !== 'sign' || [')', ']', '}'].includes(before.text)) && wanted !== 'a name';
    if (isAfterValue && token.kind !== 'end') {
      const written = token.kind === 'literal' ? undefined : token.text;
      const isNot = before.kind === 'name' && before.text.toLowerCase() === 'not';
      if (isNot) return new ProblemError(before.start, `${before.text} is written ! in conditions`);
      const operator = written === undefined ? undefined : OPERATORS.get(written.toLowerCase());
      if (operator !== undefined)
        return new ProblemError(token.start, `${written} is written ${operator} in conditions`);
      if (token.kind !== 'sign') return new ProblemError(token.start, 'an operator such as && is missing before this');
    }
    const found = token.kind === 'end' ? 'EOF' : token.kind === 'literal' ? 'a value' : token.text;
    return new ProblemError(
      token.start,
      wanted === undefined ? `Unexpected token: ${found}` : `Expected ${wanted}, got ${found}`,
    );
  }
}

const isWord = (token: Token, word: string): boolean => token.kind === 'name' && !token.isQuoted && token.text === word;

/** Operators as other languages write them. */
const OPERATORS: ReadonlyMap<string, string> = new Map([
  ['and', '&&'],
  ['or', '||'],
  ['=', '=='],
  ['&', '&&'],
  ['|', '||'],
  ['contains', '.contains(…)'],
  ['startswith', '.startsWith(…)'],
  ['endswith', '.endsWith(…)'],
  ['matches', '.matches(…)'],
]);
