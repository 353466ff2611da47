/**
 * How many values a JSON text holds, found out before it is parsed: a megabyte of brackets or keys takes the parser
 * half a second.
 */
import { endOfString } from './json-list.ts';

/**
 * Commas and opening brackets, of which each value takes at most one of each. Attributes at their limits have 22,000,
 * and no message but a batch has much besides.
 */
export const MAX_MARKS = 24_000;

/** Looks at the text only as far as that takes; one that is not valid JSON may be counted wrongly. */
export function hasMoreMarks(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let marks = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22)
      at = endOfString(text, at); // a quote
    else if (unit === 0x2c || unit === 0x5b || unit === 0x7b) {
      // , [ {
      marks += 1;
      if (marks > most) return true;
    }
  }
  return false;
}

/**
 * Whether a JSON text has more opening brackets than that, those within its strings among them. Of lists and mappings
 * nested in each other, parsing takes ten times as long as of anything else. Searching the bytes takes a hundredth of
 * what parsing does.
 */
export function hasMoreBrackets(body: Buffer, most: number): boolean {
  let brackets = 0;
  for (const bracket of [0x5b, 0x7b]) {
    // [ {
    for (let at = body.indexOf(bracket); at !== -1 && brackets <= most; at = body.indexOf(bracket, at + 1))
      brackets += 1;
  }
  return brackets > most;
}
