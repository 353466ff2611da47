/** Text from elsewhere, made harmless for a terminal. */

// C0 and C1 controls, DEL, marks of writing direction, zero-width characters, line and paragraph separators, lone surrogates.
const UNSAFE = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return `\\u${code.toString(16).padStart(4, '0')}`;
};

/** One line without anything that moves a cursor, colours, renames a window or reorders letters: `\u001b[2J`. */
export const printable = (text: string): string => text.replace(UNSAFE, escaped);

/** The same for a document of several lines, which keeps its line breaks. In JSON and double-quoted YAML the meaning stays. */
export const printableLines = (text: string): string => text.replace(UNSAFE, (character) => (character === '\n' ? character : escaped(character)));

export const isPrintable = (text: string): boolean => printable(text) === text;

const WIDE = /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}|[\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const NARROWLESS = /\p{Mn}|\p{Me}/u;

const columnsOf = (character: string): number => (NARROWLESS.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

/** Columns that a printable text takes on a terminal. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** At most `width` columns, the end replaced by an ellipsis when something had to go. */
export function clipped(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 1; // the ellipsis
  for (const character of text) {
    used += columnsOf(character);
    if (used > width) break;
    kept += character;
  }
  return `${kept}…`;
}

export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));
