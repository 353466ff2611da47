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

/**
 * Returns one line without anything that moves a cursor, colours, renames a window or reorders letters: `\u001b[2J`.
 */
export const printable = (text: string): string => text.replace(UNSAFE, escaped);

/**
 * The same for a document of several lines, which keeps its line breaks. In JSON and double-quoted YAML the meaning
 * stays.
 */
export const printableLines = (text: string): string =>
  text.replace(UNSAFE, (character) => (character === '\n' ? character : escaped(character)));

export const isPrintable = (text: string): boolean => printable(text) === text;
