/** Where the items of a list lie in a JSON text. Reads only as much of the grammar as that takes. */

/** Where an item lies in the message: a text here, bytes in protobuf. */
export type ItemSpan = { readonly from: number; readonly to: number };

/**
 * Where the items of `{"<key>":[…]}` lie; undefined when the text is anything else. The items are not read: the text is
 * valid JSON if each of them is. Of a list longer than `most` one item more than that is found, and what follows is not
 * looked at.
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
export function endOfString(text: string, opening: number): number {
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
