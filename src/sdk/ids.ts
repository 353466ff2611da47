/** Ids in the style of W3C Trace Context: random bytes in lower-case hex. */
import { randomFillSync } from 'node:crypto';

// One call to the system for hundreds of ids: each costs more than all the rest of making one.
const POOL_BYTES = 8192;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

function randomHex(byteCount: number): string {
  if (used + byteCount > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += byteCount;
  return pool.toString('hex', used - byteCount, used);
}

/** 32 hex digits. */
export const newTraceId = (): string => randomHex(16);

/** 16 hex digits. */
export const newSpanId = (): string => randomHex(8);
