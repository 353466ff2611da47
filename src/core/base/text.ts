/**
 * JSON text of strings. JSON.stringify is right for everything, but costs more on the short ones that lines and answers
 * are made of.
 */

/** Characters that need no escape and only one byte. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Its JSON is the text between two quotes, one byte a character. */
export const isPlain = (text: string): boolean => PLAIN.test(text);

/** JSON.stringify escapes C0 alone. DEL and C1 drive a terminal as well. */
const CONTROLS_LEFT = /[\x7f-\x9f]/g;
export const escapeControls = (json: string): string =>
  json.replace(CONTROLS_LEFT, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);

/** JSON of the text, without control characters. */
export const quote = (text: string): string => (PLAIN.test(text) ? `"${text}"` : escapeControls(JSON.stringify(text)));

export const quoteOrNull = (text: string | null | undefined): string =>
  text === null || text === undefined ? 'null' : quote(text);

/** Describes a caught value, which need not be an Error. */

/** Its message, for a sentence. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Its message and where it came from, for a log. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** The code of a system error, such as ENOENT; undefined for anything else. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** The beginning of a text: at most `length` UTF-16 units, never ending in half a surrogate pair. */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = (text.charCodeAt(length - 1) & 0xfc00) === 0xd800;
  return text.slice(0, isHalf ? length - 1 : length);
}

/**
 * A text of its own, to be kept: one that was cut out of a message, or out of a longer text, keeps all of that in
 * memory. The engine copies the parts of a concatenation when one of its characters is read.
 */
export function copyOf(text: string): string {
  const whole = text.slice(0, 1) + text.slice(1);
  return whole.charCodeAt(0) === text.charCodeAt(0) ? whole : text;
}

/** Whether every escape of a URL is one, and all of them are UTF-8. */
export function isWellEscaped(text: string): boolean {
  try {
    // Compared, because the bundler drops a call whose result nobody uses, and with it what it throws.
    return decodeURIComponent(text).length <= text.length;
  } catch {
    return false;
  }
}

/** A step in place or one up, also at the beginning, where parsers of URLs add the slashes that are missing. */
const HAS_DOT_STEPS = /(?:^(?:(?:file|ftp|https?|wss?):)?|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#;]|%2f|%5c)/i;

/**
 * Why whoever resolves a URI may come to another place than the one that rules have seen; undefined if it is the same.
 * A parser of URLs cuts off white space at both ends and drops line feeds and tabs, and `file:/x`, `FILE:///x` and
 * `file://localhost/x` are one to it.
 */
export function problemOfUri(uri: string): string | undefined {
  if (/^\s|\s$|\p{Cc}/u.test(uri)) return 'must not have control characters, nor white space at its ends';
  if (HAS_DOT_STEPS.test(uri)) return 'must have no "." or ".." steps';
  if (!/^file:/i.test(uri)) return undefined;
  return !uri.startsWith('file://') || /^file:\/\/localhost(?:[/\\]|$)/i.test(uri)
    ? 'must begin with file:/// for a file of this machine'
    : undefined;
}
