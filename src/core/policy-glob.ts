/**
 * The patterns of `actions:` and `resources:`. `*` stands for any run of characters, also an empty one, and does
 * cross `/` and `.`; `?` stands for exactly one character. Everything else stands for itself, case and all.
 *
 * A match reads the text once from left to right and never goes back over a `*`, so its time is at most the length
 * of the text times that of the pattern, whatever the two hold.
 */
export type Glob = { readonly source: string; matches(text: string): boolean };

export const MAX_GLOB_LENGTH = 512;

/** A pattern that stands only for itself can be looked up instead of tried. */
export const isLiteral = (pattern: string): boolean => !pattern.includes('*') && !pattern.includes('?');

export function compileGlob(pattern: string): Glob {
  const matches = matcherOf(pattern);
  return { source: pattern, matches };
}

/** The usual shapes get a matcher of their own; together they are nearly every pattern people write. */
function matcherOf(pattern: string): (text: string) => boolean {
  if (isLiteral(pattern)) return (text) => text === pattern;
  if (/^\*+$/.test(pattern)) return () => true;
  if (!pattern.includes('?')) {
    const parts = pattern.split(/\*+/);
    const [head, tail, ...more] = parts;
    if (head !== undefined && tail !== undefined && more.length === 0) return matcherOfTwo(head, tail);
  }
  return matcherOfMany(pattern.split(/\*+/).map(segmentOf));
}

function matcherOfTwo(head: string, tail: string): (text: string) => boolean {
  if (tail === '') return (text) => text.startsWith(head);
  if (head === '') return (text) => text.endsWith(tail);
  const least = head.length + tail.length;
  return (text) => text.length >= least && text.startsWith(head) && text.endsWith(tail);
}

/**
 * What stands between two `*`. `endAt` answers where the segment ends when it begins at `from`, or -1;
 * `find` where the leftmost occurrence at or after `from` ends, or -1; `startBefore` where it begins when it ends the text.
 */
type Segment = {
  endAt(text: string, from: number): number;
  find(text: string, from: number): number;
  startBefore(text: string): number;
};

function segmentOf(source: string): Segment {
  return isLiteral(source) ? literalSegment(source) : wildSegment([...source]);
}

function literalSegment(literal: string): Segment {
  const { length } = literal;
  return {
    endAt: (text, from) => (text.startsWith(literal, from) ? from + length : -1),
    find: (text, from) => {
      const at = text.indexOf(literal, from);
      return at === -1 ? -1 : at + length;
    },
    startBefore: (text) => (text.endsWith(literal) ? text.length - length : -1),
  };
}

/** A segment with `?`. Characters are code points, so that `?` never stands for half of one. */
function wildSegment(characters: readonly string[]): Segment {
  const endAt = (text: string, from: number): number => {
    let at = from;
    for (const wanted of characters) {
      if (at >= text.length) return -1;
      if (wanted === '?') at += widthAt(text, at);
      else if (text.startsWith(wanted, at)) at += wanted.length;
      else return -1;
    }
    return at;
  };
  return {
    endAt,
    find: (text, from) => {
      for (let start = from; start <= text.length; start += widthAt(text, start)) {
        const end = endAt(text, start);
        if (end !== -1) return end;
      }
      return -1;
    },
    startBefore: (text) => {
      let at = text.length;
      for (let i = characters.length - 1; i >= 0; i -= 1) {
        if (at <= 0) return -1;
        const wanted = characters[i] ?? '';
        const width = wanted === '?' ? widthBefore(text, at) : wanted.length;
        at -= width;
        if (wanted !== '?' && !text.startsWith(wanted, at)) return -1;
      }
      return at;
    },
  };
}

const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);
const widthBefore = (text: string, end: number): number => (end >= 2 && (text.codePointAt(end - 2) ?? 0) > 0xffff ? 2 : 1);

/** Taking every middle segment at its leftmost place leaves the most room for those after it, so no choice is ever undone. */
function matcherOfMany(segments: readonly Segment[]): (text: string) => boolean {
  const first = segments[0];
  const last = segments[segments.length - 1];
  if (first === undefined || last === undefined) return () => false;
  if (segments.length === 1) return (text) => first.endAt(text, 0) === text.length;
  const middle = segments.slice(1, -1);
  return (text) => {
    let at = first.endAt(text, 0);
    if (at === -1) return false;
    const tail = last.startBefore(text);
    if (tail < at) return false;
    for (const segment of middle) {
      at = segment.find(text, at);
      if (at === -1 || at > tail) return false;
    }
    return true;
  };
}
