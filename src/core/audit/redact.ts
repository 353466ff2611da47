/** Keeps secrets out of the audit log, and entries small (docs/spec.md, Audit). */
import { cutText, isPlain } from '../base/text.ts';
import { looksSecret, REDACTED, type RedactedKeys, redactText } from './redact-text.ts';

/** About how much JSON the attributes of one entry may be, in bytes. */
export const MAX_ATTRIBUTES_BYTES = 4096;
const MAX_DEPTH = 32;
const MAX_LISTED_KEYS = 32;
const MAX_LISTED_KEY_LENGTH = 64;

type Attributes = Readonly<Record<string, unknown>>;

/**
 * The attributes as they may be logged: values under a covered key, and strings anywhere that look like a credential,
 * become `[redacted]`; URLs lose their password. Values that are too large or too deep become `{truncated, limit_bytes,
 * keys}`. Returns the same object when there was nothing to hide. Looks at no more than the limit, however large the
 * input.
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
    const redacted =
      nameCovers(items[index - 1], walk.keys) && typeof items[index] === 'string'
        ? REDACTED
        : redactValue(items[index], walk, depth + 1);
    if (redacted !== items[index]) (copy ??= [...items])[index] = redacted;
  }
  return copy ?? items;
}

function redactObject(object: Attributes, walk: Walk, depth: number): Attributes {
  if (!descends(walk, depth)) return object;
  let copy: Record<string, unknown> | undefined;
  // `{name: 'Authorization', value: …}`, as headers and variables come too.
  const isNamedSecret =
    Object.hasOwn(object, 'value') && (nameCovers(object.name, walk.keys) || nameCovers(object.key, walk.keys));
  for (const key in object) {
    walk.bytesLeft -= 2 + jsonBytes(key, walk.bytesLeft);
    if (walk.bytesLeft < 0) return object;
    const value = object[key];
    const redacted =
      walk.keys.covers(key) || (isNamedSecret && key === 'value') ? REDACTED : redactValue(value, walk, depth + 1);
    const shownKey = looksSecret(key) ? REDACTED : key;
    if (copy === undefined && (redacted !== value || shownKey !== key)) copy = copyBefore(object, key);
    if (copy !== undefined) copy[shownKey] = redacted;
  }
  return copy ?? object;
}

/** A single word that names a secret. A sentence that ends in such a word does not count. */
const nameCovers = (name: unknown, keys: RedactedKeys): boolean =>
  typeof name === 'string' && ONE_NAME.test(name) && keys.covers(name);
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
