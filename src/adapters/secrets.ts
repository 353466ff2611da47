import { randomBytes, randomFillSync } from 'node:crypto';
import { HASH_KEY_LENGTH } from '../core/op-index.ts';
import { digestOf } from '../gateway/secret-token.ts';
import type { Secrets } from '../gateway/secrets.ts';

export const secrets: Secrets = { random: (bytes) => randomBytes(bytes), digestOf };

/** Random numbers that make the hash of the registry unpredictable. New ones at every start. */
export const randomHashKey = (): Int32Array => randomFillSync(new Int32Array(HASH_KEY_LENGTH));
