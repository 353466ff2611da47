/** Secrets handed out once and afterwards known only by their hash: API keys, invites, resets, refresh cookies. */
import { createHash, randomBytes } from 'node:crypto';
import type { SecretDigest } from '../core/base/ids.ts';

const SECRET_BYTES = 32;
/** 32 bytes in base64url. Anything else was never issued, and is not worth a query. */
const SECRET_SHAPE = /^[A-Za-z0-9_-]{43}$/;

/**
 * SHA-256 of a secret, in base64url. Fast on purpose: these secrets have many random bits and cannot be guessed. A
 * look-up by digest need not take constant time: its timing can tell only a prefix of the digest, and nobody can choose
 * a secret by its digest.
 */
export const digestOf = (secret: string): SecretDigest =>
  createHash('sha256').update(secret).digest('base64url') as SecretDigest;

/** 256 random bits and the digest to keep of them. */
export function mintSecret(): { readonly secret: string; readonly digest: SecretDigest } {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { secret, digest: digestOf(secret) };
}

/** The digest of a secret that a caller presents; undefined for a text that cannot have been issued. */
export const digestIfIssued = (secret: string): SecretDigest | undefined =>
  SECRET_SHAPE.test(secret) ? digestOf(secret) : undefined;
