import type { SecretDigest } from '../core/ids.ts';

/** Randomness fit for secrets, and the digest in which secrets are kept. Not for passwords: see `Passwords`. */
export type Secrets = {
  random(bytes: number): Uint8Array;
  digestOf(secret: string): SecretDigest;
};
