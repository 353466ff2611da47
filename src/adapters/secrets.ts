import { createHash, randomBytes } from 'node:crypto';
import type { SecretDigest } from '../core/ids.ts';
import type { Secrets } from '../gateway/secrets.ts';

/** SHA-256 in base64url. Fast on purpose: what is digested here has at least 192 random bits and cannot be guessed. */
export const digestOf = (secret: string): SecretDigest => createHash('sha256').update(secret, 'utf8').digest('base64url') as SecretDigest;

export const secrets: Secrets = { random: (bytes) => randomBytes(bytes), digestOf };
