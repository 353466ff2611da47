import type { SecretDigest } from '../core/ids.ts';

/** Randomness fit for secrets, and the one-way form in which secrets are kept. Never for passwords: those are `Passwords`. */
export type Secrets = {
  random(bytes: number): Uint8Array;
  digestOf(secret: string): SecretDigest;
};
