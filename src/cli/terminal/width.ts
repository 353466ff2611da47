/** How many columns a text takes on a terminal. */
import stringWidth from 'string-width';

/** What a reader sees as one character, which may be several: a letter with its accents, a family of emoji. */
const CHARACTERS = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const ASCII = /^[\x20-\x7e]*$/;

/** Columns that a printable text takes on a terminal. */
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : stringWidth(text));

/** At most `width` columns, the end replaced by an ellipsis when something had to go. */
export function clipped(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 1; // the ellipsis
  for (const { segment } of CHARACTERS.segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    kept += segment;
  }
  return `${kept}…`;
}

export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));
