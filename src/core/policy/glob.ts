/**
 * The patterns of `actions:` and `resources:`. `*` stands for any run of characters, also an empty one, and does
 * cross `/` and `.`; `?` stands for exactly one character. Everything else stands for itself, case and all.
 *
 * A match never goes back beyond the last `*` it has passed, so its time is at most the length of the text times that
 * of the pattern, whatever the two hold.
 */
export type Glob = { readonly source: string; matches(text: string): boolean };

export const MAX_GLOB_LENGTH = 512;

/** A pattern that stands only for itself can be looked up instead of tried. */
export const isLiteral = (pattern: string): boolean => !pattern.includes('*') && !pattern.includes('?');

export const compileGlob = (pattern: string): Glob => ({ source: pattern, matches: matcherOf(pattern) });

function matcherOf(pattern: string): (text: string) => boolean {
  if (isLiteral(pattern)) return (text) => text === pattern;
  if (pattern.includes('?')) return wildMatcher([...pattern]);
  const [head = '', ...rest] = pattern.split(/\*+/);
  const tail = rest.pop() ?? '';
  if (rest.length === 0 && tail === '') return (text) => text.startsWith(head); // the usual shape
  return starMatcher(head, rest, tail);
}

/**
 * The texts around the `*`. Taking each of the middle at its leftmost place leaves the most room for those after it.
 */
function starMatcher(head: string, middle: readonly string[], tail: string): (text: string) => boolean {
  const least = head.length + tail.length;
  return (text) => {
    if (text.length < least || !text.startsWith(head) || !text.endsWith(tail)) return false;
    const end = text.length - tail.length;
    let at = head.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return at <= end;
  };
}

/** With `?`, which is never half of a code point. On a mismatch, the last `*` passed takes one character more. */
function wildMatcher(pattern: readonly string[]): (text: string) => boolean {
  return (text) => {
    let next = 0; // in the pattern
    let at = 0; // in the text
    let afterStar = -1; // in the pattern, -1 before the first `*`
    let starEnd = 0; // in the text, up to which that `*` goes
    while (at < text.length) {
      const wanted = pattern[next];
      if (wanted === '*') {
        next += 1;
        afterStar = next;
        starEnd = at;
      } else if (wanted === '?') {
        next += 1;
        at += widthAt(text, at);
      } else if (wanted !== undefined && text.startsWith(wanted, at)) {
        next += 1;
        at += wanted.length;
      } else if (afterStar === -1) {
        return false;
      } else {
        starEnd += widthAt(text, starEnd);
        next = afterStar;
        at = starEnd;
      }
    }
    while (pattern[next] === '*') next += 1;
    return next === pattern.length;
  };
}

const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
