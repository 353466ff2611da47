/**
 * JSON text of strings. JSON.stringify is right for everything, but costs more on the short ones that lines and answers
 * are made of.
 */

/** Characters that need no escape and only one byte. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Its JSON is the text between two quotes, one byte a character. */
export const isPlain = (text: string): boolean => PLAIN.test(text);

/** The same text as JSON.stringify gives. */
export const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

export const quoteOrNull = (text: string | null | undefined): string =>
  text === null || text === undefined ? 'null' : quote(text);
