/** The keys whose values an audit log must not hold. */

import { cutText } from '../base/text.ts';

/**
 * Compared by letters and digits alone and without case; a key that ends in one of them counts too, as `db_password`
 * and `x-api-key` do.
 */
export const DEFAULT_REDACTED_KEYS = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'token',
  'authorization',
  'api_key',
  'access_key',
  'secret_key',
  'private_key',
  'cookie',
  'credential',
  'credentials',
  'session_id',
  'bearer',
  'passwords',
  'secrets',
  'access_tokens',
  'refresh_tokens',
  'api_keys',
  'access_keys',
  'private_keys',
  'cookies',
] as const;

const MAX_REMEMBERED_KEYS = 4096;
const MAX_REMEMBERED_KEY_LENGTH = 64;
/**
 * A longer name counts as a secret's, unread: normalization takes time that grows with the square of the number of
 * combining marks, and half a megabyte of them takes minutes.
 */
const MAX_READ_KEY_LENGTH = 1024;

export type RedactedKeys = { covers(key: string): boolean };

const normalize = (key: string): string =>
  key
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

/** `keys` take the place of the default ones; blank ones are ignored. */
export function redactedKeys(keys: readonly string[] = DEFAULT_REDACTED_KEYS): RedactedKeys {
  const endings = keys.map(normalize).filter((ending) => ending !== '');
  // The same few keys come with every check. The memory is bounded, because a caller chooses the keys.
  const remembered = new Map<string, boolean>();
  return {
    covers(key) {
      const known = remembered.get(key);
      if (known !== undefined) return known;
      if (key.length > MAX_READ_KEY_LENGTH) return true;
      const normal = normalize(key);
      const covered = endings.some((ending) => normal.endsWith(ending));
      if (key.length <= MAX_REMEMBERED_KEY_LENGTH) {
        if (remembered.size >= MAX_REMEMBERED_KEYS) remembered.clear();
        remembered.set(key, covered);
      }
      return covered;
    },
  };
}

export const REDACTED = '[redacted]';

// Each matches only at the start of a word, so that a long run of word characters is read only once.
// An API key, or the token that the gateway mints for an agent.
const OWN_KEY = /(?<![\w-])svc(?:_[A-Za-z0-9]+|agent)_[\w-]{24,}/;
const JWT = /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----/;
const BEARER = /(?<![\w-])(?:bearer|basic) +[\w.~+/=-]{16,}/i;
// Credentials of widely used services.
const SERVICE_TOKEN =
  /(?<![\w-])(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{20,}|AIza[\w-]{30,}|sk-(?=[a-zA-Z_-]*\d)[\w-]{20,})/;
const SHORTEST_SECRET = 22;
/** Every text that is redacted has a separator, or the beginning of a credential. Most texts have neither. */
const MAY_HOLD_SECRET = /[=:\s]|svc|eyJ|-----BEGIN|gh[pousr]_|github_pat_|glpat-|xox|AIza|sk-/;

// Neither of their runs can contain the prefix itself, so each character is examined once.
const URL_PASSWORD = /(:\/\/[^\s/?#@:]*):[^\s/?#]+@/g;
const URL_TOKEN = /(:\/\/)[^\s/?#@:]{20,}@/g;

/**
 * Free text, such as a resource, as it may be logged: redacted as a whole if anything in it looks like a credential;
 * URLs lose their password; and the value after a name that suggests a secret is removed, whether the name is that of a
 * parameter, a header, an option, a variable or a JSON member.
 */
export function redactText(text: string): string {
  if (!MAY_HOLD_SECRET.test(text)) return text;
  if (looksSecret(text)) return REDACTED;
  // Every URL and every name with a value contains one of these; most actions and resources do not.
  if (!SEPARATOR.test(text)) return text;
  const shown = text.includes('@')
    ? text.replace(URL_PASSWORD, `$1:${REDACTED}@`).replace(URL_TOKEN, `$1${REDACTED}@`)
    : text;
  return IS_ASSIGNED.test(shown) ? redactAssigned(shown) : shown;
}

/** How much is looked at of a text of which little is shown, so that no caller decides how long that takes. */
const LOOKED_AT = 8;

/**
 * At most so many characters of it. Redacted before it is cut: of a credential that is cut in two, a part would be
 * left.
 */
export const redactShort = (text: string, length: number): string =>
  cutText(redactText(cutText(text, LOOKED_AT * length)), length);

// Every name in DEFAULT_REDACTED_KEYS has one of them.
const STEM = /pass|secret|token|auth|key|cookie|credential|session|bearer/i;
/** `name=`, `name: `, `name => `, `--name `, with or without quotes, where the name may be one of a secret. */
const ASSIGNED = new RegExp(
  String.raw`(?<![\w.-])([\w.-]{0,48}(?:${STEM.source})[\w.-]{0,16})(?:\\{0,7}["']?\s{0,8}([=:]{1,3})>?\s{0,8}|\s{1,8})(\\{0,7})(["']?)`,
  'gi',
);
/** Matches every text that ASSIGNED matches. Most texts fail this cheaper test and need no further search. */
const IS_ASSIGNED = new RegExp(String.raw`(?:${STEM.source})[\w.-]{0,16}(?:\\{0,7}["']?\s{0,8}[=:]|\s)`, 'i');
const SEPARATOR = /[=:\s]/;
const HEADERS = redactedKeys(['authorization', 'cookie']);
const NAMED = redactedKeys();
/** A header ends with its line, parameters in quotes included; a word with what cannot be part of it. */
const VALUE = { header: /(?:[^\r\n"'=]|=(?:\\{0,7}"[^"\r\n]*"?)?)+/y, word: /[^\s&#;"']+/y } as const;
/** How a list or a mapping of JSON begins, also within a text of JSON. */
const BRACKETS = /[[{](?:\s|\\+[nrt])*\\*["'[{]/y;

function redactAssigned(text: string): string {
  let shown = '';
  let kept = 0;
  for (const { index, 0: whole, 1: name = '', 2: sign = '', 3: slashes = '', 4: quote = '' } of text.matchAll(
    ASSIGNED,
  )) {
    const from = index + whole.length;
    const isOption = name.startsWith('--');
    if (from <= kept || (!isOption && sign === '') || !NAMED.covers(name)) continue;
    if (text.startsWith(REDACTED, from) || (isOption && text.startsWith('--', from))) continue;
    const end = endOfValue(text, from, quote, slashes.length, sign.includes(':') && HEADERS.covers(name));
    if (end === from) continue;
    shown += text.slice(kept, from) + REDACTED;
    kept = end;
  }
  return kept === 0 ? text : shown + text.slice(kept);
}

function endOfValue(text: string, from: number, quote: string, slashes: number, isHeader: boolean): number {
  if (quote !== '') return endOfQuoted(text, from, quote, slashes);
  BRACKETS.lastIndex = from;
  if (BRACKETS.test(text)) return endOfBrackets(text, from);
  const value = isHeader ? VALUE.header : VALUE.word;
  value.lastIndex = from;
  return from + (value.exec(text)?.[0].length ?? 0);
}

/**
 * Finds the end of a quoted text. Its opening quote has this many backslashes before it, because it may be nested in
 * another quoted text. It ends at the first quote that is not escaped within it, or else at the end of the text.
 */
function endOfQuoted(text: string, from: number, quote: string, slashes: number): number {
  for (let at = text.indexOf(quote, from); at !== -1; at = text.indexOf(quote, at + 1)) {
    if (slashesBefore(text, at, from) % (2 * slashes + 2) === slashes) return at - slashes;
  }
  return text.length;
}

function slashesBefore(text: string, at: number, from: number): number {
  let first = at;
  while (first > from && text[first - 1] === '\\') first -= 1;
  return at - first;
}

/** Behind the bracket that closes the one at `from`. */
function endOfBrackets(text: string, from: number): number {
  let open = 0;
  for (let at = from; at < text.length; at += 1) {
    switch (text[at]) {
      case '[':
      case '{':
        open += 1;
        break;
      case ']':
      case '}':
        open -= 1;
        if (open === 0) return at + 1;
        break;
      case '"':
      case "'": {
        const slashes = slashesBefore(text, at, from);
        at = endOfQuoted(text, at + 1, text[at]!, slashes) + slashes;
        break;
      }
      default:
    }
  }
  return text.length;
}

export function looksSecret(text: string): boolean {
  return (
    text.length >= SHORTEST_SECRET &&
    (OWN_KEY.test(text) || JWT.test(text) || PRIVATE_KEY.test(text) || BEARER.test(text) || SERVICE_TOKEN.test(text))
  );
}
