/** The shape of an API key and of its record (docs/spec.md, API keys). The key itself is never kept. */
import type { SecretDigest } from '../base/ids.ts';
import { assert } from '../base/result.ts';
import type { Scope } from './roles.ts';

/** The stored record of an API key. Times are milliseconds since the Unix epoch; null: never. */
export type ApiKey = {
  /** Public: the middle part of the key, and `key:<id>` is its subject. */
  readonly id: string;
  readonly name: string;
  readonly digest: SecretDigest;
  /** How the key begins, for a human to tell keys apart. Holds nothing of the secret. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  /** The only org that the key sees; null: it sees every org. */
  readonly orgId: string | null;
  readonly createdAtMs: number;
  /** Subject of the creator, or one of `FIRST_KEY_CREATOR` and `ENVIRONMENT_CREATOR`. */
  readonly createdBy: string;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** Exact to the minute. */
  readonly lastUsedAtMs: number | null;
};

/** Creator of the key minted at the first start. */
export const FIRST_KEY_CREATOR = 'gateway';
/** Creator of the key that the operator set by SVC_BOOTSTRAP_API_KEY. */
export const ENVIRONMENT_CREATOR = 'gateway:environment';

const SUBJECT_PREFIX = 'key:';
export const keySubject = (id: string): string => SUBJECT_PREFIX + id;

/** The id in the subject of a key; undefined for the subject of an account. */
export const keyIdOf = (subject: string): string | undefined =>
  subject.startsWith(SUBJECT_PREFIX) ? subject.slice(SUBJECT_PREFIX.length) : undefined;

export const isUsable = (key: ApiKey, nowMs: number): boolean =>
  key.revokedAtMs === null && (key.expiresAtMs === null || nowMs < key.expiresAtMs);

/** When the key ended, or will; Infinity: never, as far as is known. */
export const endMsOf = ({ revokedAtMs, expiresAtMs }: ApiKey): number =>
  Math.min(revokedAtMs ?? Infinity, expiresAtMs ?? Infinity);

/** How long a revoked or expired key stays in the list: far longer than any token or invite made with it is valid. */
export const LISTED_WHEN_OVER_MS = 30 * 24 * 60 * 60 * 1000;

/** How long after its end a key is deleted. The audit log keeps what it was and did. */
export const DELETED_WHEN_OVER_MS = 90 * 24 * 60 * 60 * 1000;

/**
 * True when the key ended before this time. Never true for a key that the gateway itself made. Without its first key a
 * store would look new, and another would be minted; and a forgotten key of the environment would be taken for a new
 * one.
 */
export const isLongOver = (key: ApiKey, beforeMs: number): boolean =>
  key.createdBy !== FIRST_KEY_CREATOR && key.createdBy !== ENVIRONMENT_CREATOR && endMsOf(key) < beforeMs;

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_BYTES = 8;
const ID_LENGTH = 11; // 62^11 > 2^64
const SECRET_BYTES = 32;
const SECRET_LENGTH = 43; // 62^43 > 2^256
const CHECKSUM_LENGTH = 6; // 62^6 > 2^32

/** Random bytes needed for one key. */
export const KEY_ENTROPY_BYTES = ID_BYTES + SECRET_BYTES;

/** Whether the text has the form of a key's id. */
export const isKeyId = (text: string): boolean => /^[0-9A-Za-z]{11}$/.test(text);

const FORMAT = /^svc_([0-9A-Za-z]{11})_[0-9A-Za-z]{49}$/;

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = (ALPHABET[Number(rest % 62n)] ?? '') + text;
  return text;
}

const bigEndian = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

/** CRC-32 (IEEE 802.3) of an ASCII text. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let at = 0; at < text.length; at += 1) {
    crc ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_LENGTH);

/**
 * `svc_<id>_<secret><checksum>`: 11 characters of public id, 43 of 256 random bits, and 6 of a CRC-32 over all before
 * it, so that a scanner of leaked secrets tells a key from anything that looks like one without asking a gateway.
 */
export function formatApiKey(entropy: Uint8Array): { readonly id: string; readonly key: string } {
  assert(entropy.length === KEY_ENTROPY_BYTES, `an API key takes ${KEY_ENTROPY_BYTES} random bytes`);
  const id = base62(bigEndian(entropy.subarray(0, ID_BYTES)), ID_LENGTH);
  const body = `svc_${id}_${base62(bigEndian(entropy.subarray(ID_BYTES)), SECRET_LENGTH)}`;
  return { id, key: body + checksumOf(body) };
}

/** The public id inside a key of this format; undefined for any other text and for a mistyped key. */
export function parseApiKey(text: string): { readonly id: string } | undefined {
  const id = FORMAT.exec(text)?.[1];
  if (id === undefined) return undefined;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text === body + checksumOf(body) ? { id } : undefined;
}

/** True for a text that was meant as an API key of this format, correct or mistyped. */
export const looksLikeApiKey = (text: string): boolean => text.startsWith('svc_');

/** A truncated prefix and an ellipsis: the public part of a key of this format, four characters of any other. */
export const hintOf = (key: string): string =>
  FORMAT.test(key) ? `${key.slice(0, 4 + ID_LENGTH)}…` : `${key.slice(0, 4)}…`;

/** SVC_BOOTSTRAP_API_KEY: any 32 to 256 visible ASCII characters. */
export const isBootstrapKey = (text: string): boolean => /^[\x21-\x7e]{32,256}$/.test(text);
