// How many values a JSON text holds, found out before it is parsed: a megabyte of brackets or keys takes the parser
// half a second.

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
 * Whether a JSON text has more opening brackets than that, those within its strings among them. Parsing nested lists
 * and mappings takes ten times as long as anything else. Searching the bytes takes a hundredth of what parsing does.
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

/** Locates the items of a list in a JSON text. Reads only as much of the grammar as that takes. */

/** The position of an item in the message: characters here, bytes in protobuf. */
export type ItemSpan = { readonly from: number; readonly to: number };

/**
 * Locates the items of `{"<key>":[…]}`; undefined if the text is anything else. The items are not read: the text is
 * valid JSON if each of them is. If a list is longer than `most`, one more item is found and the rest is ignored.
 */
export function cutList(text: string, key: string, most: number): readonly ItemSpan[] | undefined {
  let at = skipSpace(text, 0);
  for (const token of ['{', `"${key}"`, ':', '[']) {
    if (!text.startsWith(token, at)) return undefined;
    at = skipSpace(text, at + token.length);
  }
  const items: ItemSpan[] = [];
  if (text[at] !== ']') {
    for (;;) {
      const to = endOfItem(text, at);
      items.push({ from: at, to });
      if (items.length > most) return items;
      if (text[to] !== ',') {
        at = to;
        break;
      }
      at = to + 1;
    }
  }
  for (const token of [']', '}']) {
    if (!text.startsWith(token, at)) return undefined;
    at = skipSpace(text, at + 1);
  }
  return at === text.length ? items : undefined;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING = [0x5b, 0x7b]; // [ {
const CLOSING = [0x5d, 0x7d]; // ] }

/** At the comma or bracket behind the item, or at the end of the text. */
function endOfItem(text: string, from: number): number {
  let depth = 0;
  let at = from;
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === OPENING[0] || unit === OPENING[1]) depth += 1;
    else if (unit === CLOSING[0] || unit === CLOSING[1]) {
      if (depth === 0) return at;
      depth -= 1;
    } else if (unit === COMMA && depth === 0) return at;
  }
  return at;
}

/** At the closing quote, or behind the text. */
function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at;
    if (unit === BACKSLASH) at += 1;
  }
  return text.length;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1;
  return at;
}
