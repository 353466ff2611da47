/** Text from elsewhere, made harmless for a terminal. */

// C0 and C1 controls, DEL, marks of writing direction, zero-width characters and invisible tags, line and paragraph
// separators, lone surrogates.
const UNSAFE =
  /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/** Each half of a pair on its own, as JSON has it. */
const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/** One line without anything that moves a cursor, colours, renames a window or reorders letters: `\u001b[2J`. */
export const printable = (text: string): string => text.replace(UNSAFE, escaped);

/**
 * The same for a document of several lines, which keeps its line breaks. In JSON and double-quoted YAML the meaning
 * stays.
 */
export const printableLines = (text: string): string =>
  text.replace(UNSAFE, (character) => (character === '\n' ? character : escaped(character)));

export const isPrintable = (text: string): boolean => printable(text) === text;

// By blocks and not by scripts: the long-vowel mark of データ belongs to no script, and the half-width katakana to one
// that is wide.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Marks that stand above or below another character, and vowels that join a Hangul syllable. */
const WITHOUT_WIDTH = /[\p{Mn}\p{Me}\u1160-\u11ff]/u;

const columnsOf = (character: string): number => (WITHOUT_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

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
