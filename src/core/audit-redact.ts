/** Keeps secrets out of the audit log, and entries small (contract: Audit). */
import { cutText } from './cut-text.ts';
import { isPlain } from './json-text.ts';

const REDACTED = '[redacted]';

/** Compared by letters and digits alone and without case; a key that ends in one of them counts too, as `db_password` and `x-api-key` do. */
export const DEFAULT_REDACTED_KEYS = [
  'password', 'passwd', 'passphrase', 'secret', 'token', 'authorization', 'api_key', 'access_key', 'secret_key', 'private_key',
  'cookie', 'set-cookie', 'credential', 'credentials', 'session_id', 'bearer', 'passwords', 'secrets', 'access_tokens',
  'refresh_tokens', 'api_keys', 'access_keys', 'private_keys', 'cookies',
] as const;

/** About how much JSON the attributes of one entry may be, in bytes. */
export const MAX_ATTRIBUTES_BYTES = 4096;
const MAX_DEPTH = 32;
const MAX_LISTED_KEYS = 32;
const MAX_LISTED_KEY_LENGTH = 64;
const MAX_REMEMBERED_KEYS = 4096;
const MAX_REMEMBERED_KEY_LENGTH = 64;

export type RedactedKeys = { covers(key: string): boolean };

const normalize = (key: string): string => key.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** `keys` take the place of the default ones; blank ones are ignored. */
export function redactedKeys(keys: readonly string[] = DEFAULT_REDACTED_KEYS): RedactedKeys {
  const endings = keys.map(normalize).filter((ending) => ending !== '');
  // The same few keys come with every check. The memory is bounded, because a caller chooses the keys.
  const remembered = new Map<string, boolean>();
  return {
    covers(key) {
      const known = remembered.get(key);
      if (known !== undefined) return known;
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

type Attributes = Readonly<Record<string, unknown>>;

/**
 * The attributes as they may be logged: values under a covered key, and strings that look like a credential wherever
 * they stand, become `[redacted]`; URLs lose their password. What is too large or too deep becomes `{truncated, limit_bytes, keys}`.
 * Returns the same object when there was nothing to hide. Looks at no more than the limit, however large the input.
 */
export function redactAttributes(attributes: Attributes, keys: RedactedKeys): Attributes {
  const walk: Walk = { keys, bytesLeft: MAX_ATTRIBUTES_BYTES };
  const redacted = redactObject(attributes, walk, 0);
  return walk.bytesLeft < 0 ? truncated(attributes) : redacted;
}

type Walk = { readonly keys: RedactedKeys; bytesLeft: number };

function redactValue(value: unknown, walk: Walk, depth: number): unknown {
  if (typeof value === 'string') {
    walk.bytesLeft -= jsonBytes(value, walk.bytesLeft);
    return walk.bytesLeft >= 0 ? redactText(value) : value;
  }
  if (Array.isArray(value)) return redactArray(value, walk, depth);
  if (typeof value === 'object' && value !== null) return redactObject(value as Attributes, walk, depth);
  walk.bytesLeft -= 6;
  return value;
}

function redactArray(items: readonly unknown[], walk: Walk, depth: number): readonly unknown[] {
  if (!descends(walk, depth)) return items;
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length && walk.bytesLeft >= 0; index += 1) {
    // Headers and arguments also come as flat lists of names and values.
    const redacted = nameCovers(items[index - 1], walk.keys) && typeof items[index] === 'string' ? REDACTED : redactValue(items[index], walk, depth + 1);
    if (redacted !== items[index]) (copy ??= [...items])[index] = redacted;
  }
  return copy ?? items;
}

function redactObject(object: Attributes, walk: Walk, depth: number): Attributes {
  if (!descends(walk, depth)) return object;
  let copy: Record<string, unknown> | undefined;
  // `{name: 'Authorization', value: …}`, as headers and variables come too.
  const isNamedSecret = Object.hasOwn(object, 'value') && (nameCovers(object.name, walk.keys) || nameCovers(object.key, walk.keys));
  for (const key in object) {
    walk.bytesLeft -= 2 + jsonBytes(key, walk.bytesLeft);
    if (walk.bytesLeft < 0) return object;
    const value = object[key];
    const redacted = walk.keys.covers(key) || (isNamedSecret && key === 'value') ? REDACTED : redactValue(value, walk, depth + 1);
    const shownKey = looksSecret(key) ? REDACTED : key;
    if (copy === undefined && (redacted !== value || shownKey !== key)) copy = copyBefore(object, key);
    if (copy !== undefined) copy[shownKey] = redacted;
  }
  return copy ?? object;
}

/** A single word that names a secret. A sentence that ends in such a word does not count. */
const nameCovers = (name: unknown, keys: RedactedKeys): boolean => typeof name === 'string' && ONE_NAME.test(name) && keys.covers(name);
const ONE_NAME = /^[\w.:-]{1,64}$/;

/** A copy of the entries before `end`, none of which needed a change. */
function copyBefore(object: Attributes, end: string): Record<string, unknown> {
  // Without a prototype, a key named __proto__ is a key like any other.
  const copy = Object.create(null) as Record<string, unknown>;
  for (const key in object) {
    if (key === end) break;
    copy[key] = object[key];
  }
  return copy;
}

function descends(walk: Walk, depth: number): boolean {
  walk.bytesLeft -= 2;
  if (depth >= MAX_DEPTH) walk.bytesLeft = -1;
  return walk.bytesLeft >= 0;
}

function truncated(attributes: Attributes): Attributes {
  const listed: string[] = [];
  for (const key in attributes) {
    if (listed.length === MAX_LISTED_KEYS) break;
    listed.push(looksSecret(key.slice(0, MAX_ATTRIBUTES_BYTES)) ? REDACTED : cutText(key, MAX_LISTED_KEY_LENGTH));
  }
  return { truncated: true, limit_bytes: MAX_ATTRIBUTES_BYTES, keys: listed };
}

/** The length of a string as JSON in UTF-8, or more than `limit` as soon as it is longer than that. */
function jsonBytes(text: string, limit: number): number {
  const quotes = 2;
  if (text.length > limit || isPlain(text)) return text.length + quotes;
  let bytes = quotes;
  for (let index = 0; index < text.length && bytes <= limit; index += 1) {
    const unit = text.charCodeAt(index);
    bytes += unit < 0x20 ? 6 : unit === 0x22 || unit === 0x5c ? 2 : unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
  }
  return bytes;
}

// Each matches only at the start of a word, so that a long run of word characters is read only once.
// An API key, or the token that the gateway mints for an agent.
const OWN_KEY = /(?<![\w-])svc(?:_[A-Za-z0-9]+|agent)_[\w-]{24,}/;
const JWT = /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----/;
const BEARER = /(?<![\w-])(?:bearer|basic) +[\w.~+/=-]{16,}/i;
// Credentials of widely used services.
const SERVICE_TOKEN = /(?<![\w-])(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{20,}|AIza[\w-]{30,}|sk-(?=[a-zA-Z_-]*\d)[\w-]{20,})/;
const SHORTEST_SECRET = 22;

// Neither of their runs can contain the prefix itself, so each character is examined once.
const URL_PASSWORD = /(:\/\/[^\s/?#@:]*):[^\s/?#]+@/g;
const URL_TOKEN = /(:\/\/)[^\s/?#@:]{20,}@/g;

/**
 * Free text, such as a resource, as it may be logged: redacted as a whole if anything in it looks like a credential; URLs
 * lose their password; and the value after a name that suggests a secret is removed, whether the name is that of a parameter,
 * a header, an option, a variable or a JSON member.
 */
export function redactText(text: string): string {
  if (looksSecret(text)) return REDACTED;
  // Neither a URL nor a name with its value is without one of them, and most actions and resources are.
  if (!SEPARATOR.test(text)) return text;
  const shown = text.includes('@') ? text.replace(URL_PASSWORD, `$1:${REDACTED}@`).replace(URL_TOKEN, `$1${REDACTED}@`) : text;
  return IS_ASSIGNED.test(shown) ? redactAssigned(shown) : shown;
}

// Every name in DEFAULT_REDACTED_KEYS has one of them.
const STEM = /pass|secret|token|auth|key|cookie|credential|session|bearer/i;
/** `name=`, `name: `, `--name `, with or without quotes, where the name may be one of a secret. */
const ASSIGNED = new RegExp(String.raw`(?<![\w.-])([\w.-]{0,48}(?:${STEM.source})[\w.-]{0,16})(\\{0,3}["']?\s{0,2}[=:]\s{0,2}\\{0,3}(["']?)|\s{1,2}(["']?))`, 'gi');
/** Matches every text that ASSIGNED matches. Most texts fail this cheaper test and need no further search. */
const IS_ASSIGNED = new RegExp(String.raw`(?:${STEM.source})[\w.-]{0,16}(?:\\{0,3}["']?\s{0,2}[=:]|\s)`, 'i');
const SEPARATOR = /[=:\s]/;
const HEADERS = redactedKeys(['authorization', 'cookie']);
const NAMED = redactedKeys();
/** Where the value of such a name ends: with its quote, a header with its line, any other with what cannot be part of it. */
const VALUE = { '"': /[^"]+/y, "'": /[^']+/y, header: /[^\r\n"']+/y, word: /[^\s&#;"']+/y } as const;

function redactAssigned(text: string): string {
  let shown = '';
  let kept = 0;
  for (const { index, 0: whole, 1: name = '', 2: sign = '', 3: quote = '', 4: quoteOfOption = '' } of text.matchAll(ASSIGNED)) {
    const from = index + whole.length;
    const isOption = name.startsWith('--');
    if (from <= kept || (!isOption && !/[=:]/.test(sign)) || !NAMED.covers(name)) continue;
    const kind = quote || quoteOfOption || (sign.includes(':') && HEADERS.covers(name) ? 'header' : 'word');
    const value = VALUE[kind as keyof typeof VALUE];
    value.lastIndex = from;
    const [secret] = value.exec(text) ?? [];
    if (secret === undefined || secret.startsWith(REDACTED) || (isOption && secret.startsWith('--'))) continue;
    shown += text.slice(kept, from) + REDACTED;
    kept = from + secret.length;
  }
  return kept === 0 ? text : shown + text.slice(kept);
}

function looksSecret(text: string): boolean {
  return text.length >= SHORTEST_SECRET
    && (OWN_KEY.test(text) || JWT.test(text) || PRIVATE_KEY.test(text) || BEARER.test(text) || SERVICE_TOKEN.test(text));
}
