/** Numbers of conditions: whole ones have 64 bits, and what does not fit is an error, because an error denies. */
import { Failure, Uint } from './values.ts';

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

const NO_INT = new Failure('int() requires a 64-bit integer in decimal digits');
const NO_UINT = new Failure('uint() requires an unsigned 64-bit integer in decimal digits');
const NO_DOUBLE = new Failure('double() requires a number in decimal digits');
const NO_BOOL = new Failure('bool() requires a string such as "true" or "false"');
const OVERFLOW = new Failure('the result is beyond 64 bits');
const ZERO = new Failure('division by zero');
const NO_REST = new Failure('modulus by zero');

const MAX_DIGITS = 20; // of a number of 64 bits; longer texts are not read

export function intOf(value: string | number | bigint): bigint | Failure {
  if (typeof value === 'bigint') return value >= MIN_INT && value <= MAX_INT ? value : NO_INT;
  // A double at the end of 64 bits stands for all that are rounded to it.
  if (typeof value === 'number') return Math.abs(value) < 2 ** 63 ? BigInt(Math.trunc(value)) : NO_INT;
  return value.length <= MAX_DIGITS && /^[+-]?\d+$/.test(value) ? intOf(BigInt(value.replace(/^\+/, ''))) : NO_INT;
}

export function uintOf(value: string | number | bigint): Uint | Failure {
  if (typeof value === 'bigint') return value >= 0n && value <= MAX_UINT ? new Uint(value) : NO_UINT;
  if (typeof value === 'number') {
    return value >= 0 && value < 2 ** 64 ? new Uint(BigInt(Math.trunc(value))) : NO_UINT;
  }
  return value.length <= MAX_DIGITS && /^\d+$/.test(value) ? uintOf(BigInt(value)) : NO_UINT;
}

const DOUBLE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const NOT_FINITE: Readonly<Record<string, number>> = { inf: Infinity, infinity: Infinity, nan: NaN };

export function doubleOf(text: string): number | Failure {
  const [, sign = '', word = ''] = /^([+-]?)(inf|infinity|nan)$/i.exec(text) ?? [];
  if (word !== '') return (NOT_FINITE[word.toLowerCase()] ?? NaN) * (sign === '-' ? -1 : 1);
  const value = DOUBLE.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : NO_DOUBLE;
}

const TRUE: readonly string[] = ['1', 't', 'true', 'TRUE', 'True'];
const FALSE: readonly string[] = ['0', 'f', 'false', 'FALSE', 'False'];

export const boolOf = (text: string): boolean | Failure =>
  TRUE.includes(text) ? true : FALSE.includes(text) ? false : NO_BOOL;

export const ARITHMETIC = ['-', '*', '/', '%', '+'] as const;
export type Arithmetic = (typeof ARITHMETIC)[number];

export const ON_DOUBLES: Readonly<Record<Arithmetic, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
};

const exact = (op: Arithmetic, a: bigint, b: bigint): bigint | Failure => {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return b === 0n ? ZERO : a / b;
    case '%':
      return b === 0n ? NO_REST : a % b;
  }
};

export function onInts(op: Arithmetic, a: bigint, b: bigint): bigint | Failure {
  const result = exact(op, a, b);
  return typeof result === 'bigint' && (result < MIN_INT || result > MAX_INT) ? OVERFLOW : result;
}

export function onUints(op: Arithmetic, a: Uint, b: Uint): Uint | Failure {
  const result = exact(op, a.value, b.value);
  if (typeof result !== 'bigint') return result;
  return result < 0n || result > MAX_UINT ? OVERFLOW : new Uint(result);
}
