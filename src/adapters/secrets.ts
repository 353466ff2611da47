import { randomBytes, randomFillSync } from 'node:crypto';
import { HASH_KEY_LENGTH } from '../core/op-index.ts';
import { digestOf } from '../gateway/secret-token.ts';
import type { Secrets } from '../gateway/secrets.ts';

export const secrets: Secrets = { random: (bytes) => randomBytes(bytes), digestOf };

/** What the registry's hash is made unpredictable with, anew at every start. */
export const randomHashKey = (): Int32Array => randomFillSync(new Int32Array(HASH_KEY_LENGTH));
