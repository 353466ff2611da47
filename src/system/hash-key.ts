import { randomFillSync } from 'node:crypto';
import { HASH_KEY_LENGTH } from '../core/ops/op-index.ts';

/** Random numbers that make the hash of the registry unpredictable. New ones at every start. */
export const randomHashKey = (): Int32Array => randomFillSync(new Int32Array(HASH_KEY_LENGTH));
