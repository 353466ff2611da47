/**
 * Functions of conditions that the CEL library does not do as CEL says: what cannot be converted must fail, because a
 * condition that fails denies. The library's own cannot be replaced under their names, so in the tree of a parsed
 * condition their calls are redirected to these.
 */
import { messageOf } from '../base/text.ts';
import type { ConditionProblem, FunctionCall, OwnFunction } from './problem.ts';
import { TIME_FUNCTIONS } from './times.ts';

/** A signature as the library writes it, and what it does. */
const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
const MAX_DIGITS = 20; // of a number of 64 bits; longer texts are not read

function wholeNumber(name: 'int' | 'uint', value: string | number): bigint {
  const [written, least, most] = name === 'int' ? [/^[+-]?\d+$/, MIN_INT, MAX_INT] : [/^\d+$/, 0n, 2n ** 64n - 1n];
  const isNumber =
    typeof value === 'number' ? Number.isFinite(value) : value.length <= MAX_DIGITS && written.test(value);
  const whole = isNumber ? BigInt(typeof value === 'number' ? Math.trunc(value) : value) : undefined;
  if (whole === undefined || whole < least || whole > most)
    throw new Error(
      `${name}() requires ${name === 'int' ? 'a 64-bit' : 'an unsigned 64-bit'} integer in decimal digits`,
    );
  return whole;
}

const DOUBLE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const NOT_FINITE: Readonly<Record<string, number>> = { inf: Infinity, infinity: Infinity, nan: NaN };

function double(text: string): number {
  const [, sign = '', word = ''] = /^([+-]?)(inf|infinity|nan)$/i.exec(text) ?? [];
  if (word !== '') return NOT_FINITE[word.toLowerCase()]! * (sign === '-' ? -1 : 1);
  const value = DOUBLE.test(text) ? Number(text) : NaN;
  if (!Number.isFinite(value)) throw new Error('double() requires a number in decimal digits');
  return value;
}

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

/**
 * Moves the 26 letters from `first` on, and no other: to JavaScript, the sign of Kelvin is a K too. By numbers, because
 * replacing the letters of a long text one by one takes three times as long.
 */
function shiftLetters(text: string, first: number, by: number): string {
  const units = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    units[at] = unit >= first && unit < first + 26 ? unit + by : unit;
  }
  let shifted = '';
  for (let at = 0; at < units.length; at += 8192) shifted += String.fromCharCode(...units.subarray(at, at + 8192));
  return shifted;
}

const BOOL = /^(?:(1|t|true|TRUE|True)|0|f|false|FALSE|False)$/;

function bool(text: string): boolean {
  const found = BOOL.exec(text);
  if (found === null) throw new Error('bool() requires a string such as "true" or "false"');
  return found[1] !== undefined;
}

/** Of the library, whose class of unsigned numbers is not exported. */
type Uint = { valueOf(): bigint };

const OWN: readonly OwnFunction[] = [
  // The library's message repeats the text, which may be a secret, and the reason of a failed condition is logged.
  ['bool(bool): bool', (value: boolean) => value],
  ['bool(string): bool', bool],
  ['int(int): int', (value: bigint) => value],
  ['int(double): int', (value: number) => wholeNumber('int', value)],
  ['int(string): int', (text: string) => wholeNumber('int', text)],
  ['uint(uint): uint', (value: Uint) => value.valueOf()],
  ['uint(int): uint', (value: bigint) => wholeNumber('uint', String(value))],
  ['uint(double): uint', (value: number) => wholeNumber('uint', value)],
  ['uint(string): uint', (text: string) => wholeNumber('uint', text)],
  ['double(double): double', (value: number) => value],
  ['double(int): double', (value: bigint) => Number(value)],
  ['double(uint): double', (value: Uint) => Number(value)],
  ['double(string): double', double],
  [
    'string.lowerAscii(): string',
    (text: string) => (isAscii(text) ? text.toLowerCase() : shiftLetters(text, 0x41, 32)),
  ],
  [
    'string.upperAscii(): string',
    (text: string) => (isAscii(text) ? text.toUpperCase() : shiftLetters(text, 0x61, -32)),
  ],
  ...TIME_FUNCTIONS,
];

const SUFFIX = 'AsCel'; // no name of a function that conditions may call ends so

/** The same message, with the names that an author has written. */
export const withWrittenNames = (message: string): string => message.replaceAll(`${SUFFIX}(`, '(');

/** The part of the library's environment that matters here. */
type Functions = {
  registerFunction(signature: string, run: (...args: never[]) => unknown, options: { readonly async: false }): unknown;
  evaluate(source: string, variables: object): unknown;
};

export function registerOwnFunctions(environment: Functions): void {
  const UnsignedInt = (environment.evaluate('0u', {}) as object).constructor as new (value: unknown) => unknown;
  for (const [signature, run] of OWN) {
    const own = signature.endsWith(': uint') ? (...args: never[]) => new UnsignedInt(run(...args)) : run;
    environment.registerFunction(signature.replace('(', `${SUFFIX}(`), own, { async: false });
  }
}

const callOf = (isMethod: boolean, name: string, argCount: number): string =>
  `${isMethod ? '.' : ''}${name}/${argCount}`;

const OWN_CALLS: ReadonlySet<string> = new Set(
  OWN.map(([signature]) => {
    const [, path = '', args = ''] = /^([\w.]+)\((\w*)\)/.exec(signature) ?? [];
    return callOf(path.includes('.'), path.slice(path.lastIndexOf('.') + 1), args === '' ? 0 : 1);
  }),
);

/** Whether a call of this function is to be redirected. */
export const isOwn = (name: string, isMethod: boolean, argCount: number): boolean =>
  OWN_CALLS.has(callOf(isMethod, name, argCount));

/**
 * Redirects the call. A text that is written out and cannot be converted, or names no time zone, is a mistake of the
 * author.
 */
export function redirect(call: FunctionCall): readonly ConditionProblem[] {
  const [name, ...rest] = call.args;
  const isMethod = call.op === 'rcall';
  const [written] = isMethod ? call.args[2] : call.args[1];
  const ofText = OWN.find(([signature]) => `.${signature}`.includes(`.${name}(string)`))?.[1] as
    | ((...args: unknown[]) => unknown)
    | undefined;
  try {
    if (written?.op === 'value' && typeof written.args === 'string')
      ofText?.(...(isMethod ? [new Date(0)] : []), written.args);
  } catch (error) {
    return [{ offset: written!.start, problem: messageOf(error) }];
  }
  (call as { args: unknown }).args = [`${name}${SUFFIX}`, ...rest];
  return [];
}
