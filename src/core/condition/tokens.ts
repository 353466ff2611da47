/** Cuts an expression into tokens: the lexical part of the language definition of CEL. */
import { ProblemError } from './problem.ts';
import { encodeUtf8 } from './utf8.ts';
import { Uint } from './values.ts';

type At = { readonly start: number; readonly end: number };
export type Token = At &
  (
    | { readonly kind: 'literal'; readonly value: number | bigint | string | Uint8Array | Uint }
    | { readonly kind: 'name'; readonly text: string; readonly isQuoted: boolean }
    | { readonly kind: 'sign'; readonly text: string }
    | { readonly kind: 'end' }
  );

const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

const BLANK = /(?:[\t\n\f\r ]+|\/\/[^\n]*)+/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const QUOTED_NAME = /`([A-Za-z0-9_./ -]+)`/y;
const NUMBER =
  /0[xX]([0-9a-fA-F]+)([uU]?)|(\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(\d+)([uU]?)/y;
const STRING = /([bB]?[rR]?|[rR][bB])("""|'''|"|')/y;
const SIGN = /==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()[\]{}=&|]/y;

/** An integer beyond 64 bits is kept as it is after a minus: -9223372036854775808 is one. */
export function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; ; ) {
    at += take(BLANK, source, at)?.[0].length ?? 0;
    if (at >= source.length) {
      tokens.push({ kind: 'end', start: source.length, end: source.length });
      return tokens;
    }
    const token = stringAt(source, at) ?? numberAt(source, at) ?? nameAt(source, at) ?? signAt(source, at);
    tokens.push(token);
    at = token.end;
  }
}

function take(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

function nameAt(source: string, start: number): Token | undefined {
  const plain = take(NAME, source, start)?.[0];
  if (plain !== undefined) return { kind: 'name', text: plain, isQuoted: false, start, end: start + plain.length };
  const [whole, inside = ''] = take(QUOTED_NAME, source, start) ?? [];
  return whole === undefined
    ? undefined
    : { kind: 'name', text: inside, isQuoted: true, start, end: start + whole.length };
}

function signAt(source: string, start: number): Token {
  const text = take(SIGN, source, start)?.[0];
  if (text === undefined) {
    const character = String.fromCodePoint(source.codePointAt(start) ?? 0);
    throw new ProblemError(start, `Unexpected character: ${character}`);
  }
  return { kind: 'sign', text, start, end: start + text.length };
}

function numberAt(source: string, start: number): Token | undefined {
  const found = take(NUMBER, source, start);
  if (found === null) return undefined;
  const [whole, hex, hexSuffix, double, decimal, decimalSuffix] = found;
  const end = start + whole.length;
  if (double !== undefined) {
    const value = Number(double);
    if (!Number.isFinite(value)) throw new ProblemError(start, 'this number is too large for a double');
    return { kind: 'literal', value, start, end };
  }
  const value = BigInt(hex === undefined ? (decimal ?? '') : `0x${hex}`);
  if ((hexSuffix ?? decimalSuffix ?? '') !== '') {
    if (value > MAX_UINT) throw new ProblemError(start, 'this number is too large for a uint of 64 bits');
    return { kind: 'literal', value: new Uint(value), start, end };
  }
  if (value > MAX_INT + 1n) throw new ProblemError(start, 'this number is too large for an int of 64 bits');
  return { kind: 'literal', value, start, end };
}

function stringAt(source: string, start: number): Token | undefined {
  const [opening, prefix = '', quote = ''] = take(STRING, source, start) ?? [];
  if (opening === undefined) return undefined;
  const isRaw = /r/i.test(prefix);
  const from = start + opening.length;
  let at = from;
  while (!source.startsWith(quote, at)) {
    const isBroken = at >= source.length || (quote.length === 1 && /[\n\r]/.test(source[at] ?? ''));
    if (isBroken) throw new ProblemError(start, `this string does not end; add ${quote}`);
    at += source[at] === '\\' && !isRaw ? 2 : 1;
  }
  const written = source.slice(from, at);
  const value = /b/i.test(prefix) ? bytesOf(written, isRaw, from) : textOf(written, isRaw, from);
  return { kind: 'literal', value, start, end: at + quote.length };
}

const ESCAPE = /\\(?:([abfnrtv\\?"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;
const CONTROL: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Passes on what is written, piece by piece: text, characters that are escaped, and the numbers of `\x` and `\377`. */
function unescape(
  written: string,
  offset: number,
  text: (piece: string) => void,
  number: (code: number) => void,
  isBytes: boolean,
): void {
  let from = 0;
  for (let at = written.indexOf('\\'); at !== -1; at = written.indexOf('\\', from)) {
    text(written.slice(from, at));
    const [whole, control, hex, short, long, octal] = take(ESCAPE, written, at) ?? [];
    const point = Number.parseInt(short ?? long ?? '0', 16);
    const isCharacter = short !== undefined || long !== undefined;
    if (whole === undefined || (isCharacter && (isBytes || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)))) {
      const shown = written.slice(at, at + 2);
      throw new ProblemError(offset + at, `Invalid escape sequence: ${shown}; a backslash is written \\\\`);
    }
    if (control !== undefined) text(CONTROL[control] ?? control);
    else if (isCharacter) text(String.fromCodePoint(point));
    else number(hex === undefined ? Number.parseInt(octal ?? '0', 8) : Number.parseInt(hex, 16));
    from = at + whole.length;
  }
  text(written.slice(from));
}

function textOf(written: string, isRaw: boolean, offset: number): string {
  if (isRaw || !written.includes('\\')) return written;
  let value = '';
  const add = (piece: string): void => {
    value += piece;
  };
  unescape(written, offset, add, (code) => add(String.fromCodePoint(code)), false);
  return value;
}

function bytesOf(written: string, isRaw: boolean, offset: number): Uint8Array {
  if (isRaw) return encodeUtf8(written);
  const bytes: number[] = [];
  unescape(
    written,
    offset,
    (piece) => bytes.push(...encodeUtf8(piece)),
    (code) => bytes.push(code),
    true,
  );
  return Uint8Array.from(bytes);
}
