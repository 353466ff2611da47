/**
 * Reads the syntax of RE2 as far as `matches()` needs it: what matches, not what it captures or which match is first.
 * The text is known to be valid; what is valid and not understood here is refused.
 */

/** A class of characters: text for a class of JavaScript with the flag `u`, and whether case is ignored. */
export type CharClass = { readonly text: string; readonly isNegated: boolean; readonly ignoresCase: boolean };

export type Assertion = 'text-start' | 'text-end' | 'line-start' | 'line-end' | 'word-edge' | 'no-word-edge';

export type Part =
  | { readonly kind: 'class'; readonly chars: CharClass }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Part[] }
  /** `most` may be Infinity. */
  | { readonly kind: 'repeat'; readonly part: Part; readonly least: number; readonly most: number };

/** Thrown with what is not understood. */
export class Unsupported extends Error {}

type Flags = { readonly i: boolean; readonly m: boolean; readonly s: boolean };

const LAST = 0x10ffff;
const hex = (code: number): string => `\\u{${code.toString(16)}}`;
const range = (from: number, to: number): string => (from === to ? hex(from) : `${hex(from)}-${hex(to)}`);
const rangesOf = (...pairs: readonly (readonly [number, number])[]): string =>
  pairs.map(([from, to]) => range(from, to)).join('');
/** Returns the gaps between sorted ranges. */
function between(pairs: readonly (readonly [number, number])[]): string {
  let next = 0;
  let text = '';
  for (const [from, to] of pairs) {
    if (from > next) text += range(next, from - 1);
    next = to + 1;
  }
  return text + range(next, LAST);
}

type Ranges = readonly (readonly [number, number])[];
const DIGITS: Ranges = [[0x30, 0x39]];
// prettier-ignore
const WORD: Ranges = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
// prettier-ignore
const SPACES: Ranges = [
  [0x9, 0xa],
  [0xc, 0xd],
  [0x20, 0x20],
];
const PERL: Readonly<Record<string, Ranges>> = { d: DIGITS, w: WORD, s: SPACES };
// prettier-ignore
const POSIX: Readonly<Record<string, Ranges>> = {
  alnum: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  alpha: [
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  ascii: [[0, 0x7f]],
  blank: [
    [0x9, 0x9],
    [0x20, 0x20],
  ],
  cntrl: [
    [0, 0x1f],
    [0x7f, 0x7f],
  ],
  digit: DIGITS,
  graph: [[0x21, 0x7e]],
  lower: [[0x61, 0x7a]],
  print: [[0x20, 0x7e]],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  space: [
    [0x9, 0xd],
    [0x20, 0x20],
  ],
  upper: [[0x41, 0x5a]],
  word: WORD,
  xdigit: [
    [0x30, 0x39],
    [0x41, 0x46],
    [0x61, 0x66],
  ],
};
const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  A: 'text-start',
  z: 'text-end',
  b: 'word-edge',
  B: 'no-word-edge',
};

export function parsePattern(text: string): Part {
  return new Reader(text).alternatives({ i: false, m: false, s: false });
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Up to the end of the group, or of the text. Flags may change within it, also for what follows a `|`. */
  alternatives(flags: Flags): Part {
    const branches: Part[] = [];
    let parts: Part[] = [];
    let current = flags;
    for (; this.#at < this.#text.length && !this.#is(')'); ) {
      if (this.#take('|')) {
        branches.push({ kind: 'all', parts });
        parts = [];
        continue;
      }
      const flagsTo = this.#takeFlags(current);
      if (flagsTo !== undefined) current = flagsTo;
      else if (this.#take('\\Q')) parts.push(...this.#quoted(current));
      else parts.push(this.#repeated(this.#one(current)));
    }
    branches.push({ kind: 'all', parts });
    return branches.length === 1 ? branches[0]! : { kind: 'any', parts: branches };
  }

  #is(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at += text.length;
    return true;
  }

  #takeMatch(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#text) ?? undefined;
    if (found !== undefined) this.#at += found[0].length;
    return found;
  }

  #code(): number {
    const code = this.#text.codePointAt(this.#at)!;
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }

  /** `(?i)`, which holds to the end of the group; undefined where there is none. */
  #takeFlags(flags: Flags): Flags | undefined {
    const found = this.#takeMatch(/\(\?([imsU]*)(?:-([imsU]+))?\)/y);
    return found && withFlags(flags, found[1] ?? '', found[2] ?? '');
  }

  #quoted(flags: Flags): readonly Part[] {
    const end = this.#text.indexOf('\\E', this.#at);
    const text = this.#text.slice(this.#at, end === -1 ? undefined : end);
    this.#at = end === -1 ? this.#text.length : end + 2;
    const parts = Array.from(text, (one) => literal(one.codePointAt(0)!, flags));
    const last = parts.pop();
    return last === undefined ? [] : [...parts, this.#repeated(last)];
  }

  #repeated(part: Part): Part {
    let repeated = part;
    for (;;) {
      const found = this.#takeMatch(/(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/y);
      if (found === undefined) return repeated;
      const [whole, least, comma, most] = found;
      if (whole[0] === '*') repeated = { kind: 'repeat', part: repeated, least: 0, most: Infinity };
      else if (whole[0] === '+') repeated = { kind: 'repeat', part: repeated, least: 1, most: Infinity };
      else if (whole[0] === '?') repeated = { kind: 'repeat', part: repeated, least: 0, most: 1 };
      else {
        const count = Number(least);
        const upTo = comma === undefined ? count : most === '' ? Infinity : Number(most);
        repeated = { kind: 'repeat', part: repeated, least: count, most: upTo };
      }
    }
  }

  #one(flags: Flags): Part {
    if (this.#take('(')) return this.#group(flags);
    if (this.#take('[')) return { kind: 'class', chars: this.#bracketed(flags) };
    if (this.#take('.')) return chars(flags.s ? range(0, LAST) : between([[0xa, 0xa]]), false);
    if (this.#take('^')) return { kind: 'assert', assertion: flags.m ? 'line-start' : 'text-start' };
    if (this.#take('$')) return { kind: 'assert', assertion: flags.m ? 'line-end' : 'text-end' };
    if (!this.#take('\\')) return literal(this.#code(), flags);
    const assertion = ASSERTIONS[this.#text[this.#at] ?? ''];
    if (assertion !== undefined) {
      this.#at += 1;
      return { kind: 'assert', assertion };
    }
    const escaped = this.#escaped();
    if (typeof escaped === 'number') return literal(escaped, flags);
    return { kind: 'class', chars: { ...escaped, ignoresCase: flags.i } };
  }

  #group(outer: Flags): Part {
    const named = this.#takeMatch(/\?P?<\w+>/y);
    const flagged = named === undefined ? this.#takeMatch(/\?([imsU]*)(?:-([imsU]+))?:/y) : undefined;
    if (named === undefined && flagged === undefined && this.#is('?')) throw new Unsupported('this kind of group');
    const part = this.alternatives(
      flagged === undefined ? outer : withFlags(outer, flagged[1] ?? '', flagged[2] ?? ''),
    );
    this.#at += 1; // its parenthesis
    return part;
  }

  /** Behind a backslash. */
  #escaped(): number | Named {
    const property = this.#takeMatch(/([pP])(?:\{(\^?)([\w&]+)\}|(\w))/y);
    if (property !== undefined) return propertyOf(property);
    const coded = this.#takeMatch(/x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3})/y);
    if (coded !== undefined) return Number.parseInt(coded[1] ?? coded[2] ?? coded[3]!, coded[3] === undefined ? 16 : 8);
    const code = this.#code();
    const letter = String.fromCodePoint(code);
    if (/[^A-Za-z]/.test(letter)) return code;
    const perl = PERL[letter.toLowerCase()];
    if (perl !== undefined) return { text: rangesOf(...perl), isNegated: !(letter in PERL), ranges: perl };
    const control = CONTROLS[letter];
    if (control === undefined) throw new Unsupported(`\\${letter}`);
    return control;
  }

  #bracketed({ i }: Flags): CharClass {
    const isNegated = this.#take('^');
    let text = '';
    for (let isFirst = true; isFirst || !this.#is(']'); isFirst = false) {
      const posix = this.#takeMatch(/\[:(\^?)(\w+):\]/y);
      const ranges = posix && POSIX[posix[2]!];
      if (ranges !== undefined) {
        text += posix?.[1] === '^' ? inverseOf(ranges, i) : rangesOf(...ranges);
        continue;
      }
      const from = this.#take('\\') ? this.#escaped() : this.#code();
      if (typeof from === 'object') text += textOf(from, i);
      else if (this.#is('-') && this.#text[this.#at + 1] !== ']') {
        this.#at += 1;
        const to = this.#take('\\') ? this.#escaped() : this.#code();
        if (typeof to === 'object') throw new Unsupported('a class as the end of a range');
        text += range(from, to);
      } else text += hex(from);
    }
    this.#at += 1; // its bracket
    return { text, isNegated, ignoresCase: i };
  }
}

const chars = (text: string, ignoresCase: boolean): Part => ({
  kind: 'class',
  chars: { text, isNegated: false, ignoresCase },
});
const literal = (code: number, { i }: Flags): Part => chars(hex(code), i);

const withFlags = ({ i, m, s }: Flags, on: string, off: string): Flags => ({
  i: (i || on.includes('i')) && !off.includes('i'),
  m: (m || on.includes('m')) && !off.includes('m'),
  s: (s || on.includes('s')) && !off.includes('s'),
});

/** A class with a name: `text` without its negation. */
type Named = { readonly text: string; readonly isNegated: boolean; readonly ranges?: Ranges };

function textOf({ text, isNegated, ranges }: Named, ignoresCase: boolean): string {
  if (!isNegated) return text;
  if (ranges !== undefined) return inverseOf(ranges, ignoresCase);
  if (ignoresCase) throw new Unsupported('a negated \\p in brackets where case is ignored');
  return text.replace('\\p', '\\P');
}

/**
 * All that is not in these ranges of ASCII. If case is ignored, characters that differ from them only in case are
 * excluded, too.
 */
function inverseOf(ranges: Ranges, ignoresCase: boolean): string {
  if (!ignoresCase) return between(ranges);
  const expression = new RegExp(`[${rangesOf(...ranges)}]`, 'iu');
  const folded = [...Array(0x80).keys(), LONG_S, KELVIN].filter((code) => expression.test(String.fromCodePoint(code)));
  return between(folded.map((code) => [code, code] as const));
}

/** The only characters beyond ASCII that differ only in case from some in it. */
const LONG_S = 0x17f;
const KELVIN = 0x212a;

/** RE2 names categories and scripts alike. */
function propertyOf([, letter, not, long, short]: RegExpExecArray): Named {
  const name = long ?? short!;
  const isNegated = (letter === 'P') !== (not === '^');
  if (name === 'Any' && !isNegated) return { text: range(0, LAST), isNegated };
  for (const candidate of [name, `Script=${name}`]) {
    try {
      new RegExp(`[\\p{${candidate}}]`, 'u');
      return { text: `\\p{${candidate}}`, isNegated };
    } catch {} // the other spelling
  }
  throw new Unsupported(`\\p{${name}}`);
}
