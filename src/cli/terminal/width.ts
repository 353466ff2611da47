/** How many columns a text takes on a terminal. */
import { eastAsianWidth } from 'get-east-asian-width';

const ASCII = /^[\x20-\x7e]*$/;
/** Marks that stand above or below another character, and vowels that join a Hangul syllable. */
const WITHOUT_WIDTH = /[\p{Mn}\p{Me}\u1160-\u11ff]/u;

const columnsOf = (character: string): number =>
  WITHOUT_WIDTH.test(character) ? 0 : eastAsianWidth(character.codePointAt(0) ?? 0);

/** Columns that a printable text takes, in which nothing joins characters: what would is escaped. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
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

/** The text in pieces of at most `width` columns; a character that is wider is a piece of its own. */
export function piecesOf(text: string, width: number): readonly string[] {
  const pieces = [''];
  let used = 0;
  for (const character of text) {
    const columns = columnsOf(character);
    if (used + columns > width && used > 0) {
      pieces.push('');
      used = 0;
    }
    pieces[pieces.length - 1] += character;
    used += columns;
  }
  return pieces;
}

export const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));
