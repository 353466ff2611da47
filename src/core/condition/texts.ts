/**
 * Text functions of conditions. Positions and sizes count characters, as CEL does, not the units of UTF-16, in which
 * one beyond U+FFFF has two. Each function takes its steps before it makes something that is larger than its operands.
 */
import { take } from './steps.ts';
import { Failure, type Steps, stepsToRead } from './values.ts';

const OUT_OF_RANGE = new Failure('this position is not within the string');
const SURROGATE = /[\ud800-\udfff]/;
const isAllBasic = (text: string): boolean => !SURROGATE.test(text);

/** Takes the steps of going through a text character by character, where that is needed. */
export const takeForCharacters = (steps: Steps, text: string): Failure | undefined =>
  isAllBasic(text) ? undefined : take(steps, 2 * text.length);

export function characterCount(text: string): number {
  if (isAllBasic(text)) return text.length;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Returns the start of the nth character, in units of UTF-16; undefined beyond the end. */
function unitAt(text: string, nth: bigint): number | undefined {
  if (nth < 0n || nth > BigInt(text.length)) return undefined;
  if (isAllBasic(text)) return Number(nth);
  let left = Number(nth);
  let unit = 0;
  for (const character of text) {
    if (left === 0) break;
    left -= 1;
    unit += character.length;
  }
  return left === 0 ? unit : undefined;
}

const characterAtUnit = (text: string, unit: number): bigint =>
  BigInt(unit < 0 ? unit : characterCount(text.slice(0, unit)));

export function charAt(text: string, nth: bigint): string | Failure {
  const unit = unitAt(text, nth);
  if (unit === undefined) return OUT_OF_RANGE;
  const point = text.codePointAt(unit);
  return point === undefined ? '' : String.fromCodePoint(point);
}

export function substring(text: string, from: bigint, to?: bigint): string | Failure {
  const [first, end] = [unitAt(text, from), to === undefined ? text.length : unitAt(text, to)];
  return first === undefined || end === undefined || first > end ? OUT_OF_RANGE : text.slice(first, end);
}

export function indexOf(text: string, part: string, from = 0n): bigint | Failure {
  const first = unitAt(text, from);
  return first === undefined ? OUT_OF_RANGE : characterAtUnit(text, text.indexOf(part, first));
}

export function lastIndexOf(text: string, part: string, from?: bigint): bigint | Failure {
  const last = from === undefined ? text.length : unitAt(text, from);
  return last === undefined ? OUT_OF_RANGE : characterAtUnit(text, text.lastIndexOf(part, last));
}

export function joined(parts: readonly unknown[], separator: string, steps: Steps): string | Failure {
  let length = 0;
  for (const part of parts) {
    if (typeof part !== 'string') return new Failure('join() requires a list of strings');
    length += part.length + separator.length;
  }
  return take(steps, parts.length + stepsToRead(length)) ?? parts.join(separator);
}

/** `most`: how many parts; the last of them is what is left. */
export function split(text: string, separator: string, most: bigint | undefined, steps: Steps): string[] | Failure {
  if (most === 0n) return [];
  const limit = most === undefined || most < 0n ? Number.POSITIVE_INFINITY : Number(most);
  const parts: string[] = [];
  let from = 0;
  while (parts.length + 1 < limit) {
    const width = separator === '' ? ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1) : 0;
    const found = separator === '' ? from + width : text.indexOf(separator, from);
    if (found === -1 || (separator === '' && found >= text.length)) break;
    const spent = take(steps, 2);
    if (spent !== undefined) return spent;
    parts.push(text.slice(from, found));
    from = found + separator.length;
  }
  if (separator !== '' || from < text.length) parts.push(text.slice(from));
  return parts;
}

export function replace(
  text: string,
  part: string,
  by: string,
  most: bigint | undefined,
  steps: Steps,
): string | Failure {
  const limit = most === undefined || most < 0n ? text.length + 1 : Math.min(Number(most), text.length + 1);
  if (limit === 0) return text;
  if (part === '') return inserted(text, by, limit, steps);
  const pieces = split(text, part, BigInt(limit) + 1n, steps);
  if (pieces instanceof Failure) return pieces;
  return joined(pieces, by, steps);
}

/** Before each character, and at the end. */
function inserted(text: string, by: string, most: number, steps: Steps): string | Failure {
  const characters = Array.from(text);
  const count = Math.min(most, characters.length + 1);
  const spent = take(steps, characters.length + stepsToRead(by.length * count));
  if (spent !== undefined) return spent;
  const written = characters.map((character, nth) => (nth < count ? by + character : character)).join('');
  return count > characters.length ? written + by : written;
}

/** The white space of Unicode, and no other: JavaScript takes U+FEFF for white space, and U+0085 for none. */
const WHITE = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

export function trimmed(text: string, steps: Steps): string | Failure {
  const isTrimmed = !WHITE.test(text[0] ?? '') && !WHITE.test(text.at(-1) ?? '');
  if (isTrimmed) return text;
  const spent = take(steps, 2 * text.length);
  if (spent !== undefined) return spent;
  let [first, end] = [0, text.length];
  while (first < end && WHITE.test(text[first] ?? '')) first += 1;
  while (end > first && WHITE.test(text[end - 1] ?? '')) end -= 1;
  return text.slice(first, end);
}

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

export const lowerAscii = (text: string, steps: Steps): string | Failure =>
  isAscii(text) ? text.toLowerCase() : (take(steps, 2 * text.length) ?? shiftLetters(text, 0x41, 32));
export const upperAscii = (text: string, steps: Steps): string | Failure =>
  isAscii(text) ? text.toUpperCase() : (take(steps, 2 * text.length) ?? shiftLetters(text, 0x61, -32));

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

export const reversed = (text: string, steps: Steps): string | Failure =>
  take(steps, 2 * text.length) ?? Array.from(text).reverse().join('');
