/** Random halves of operation ids, for operations that the gateway itself names. */
import { randomFillSync } from 'node:crypto';

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
/** Asking the system for random bytes costs as much as a check, however few they are. */
const DRAWN_BYTES = 4_096;

const drawn = Buffer.alloc(DRAWN_BYTES);
let used = DRAWN_BYTES;

/** In hex. None of the bytes is used twice. */
function random(bytes: number): string {
  if (used + bytes > DRAWN_BYTES) {
    randomFillSync(drawn);
    used = 0;
  }
  used += bytes;
  return drawn.toString('hex', used - bytes, used);
}

export const newTraceId = (): string => random(TRACE_BYTES);
export const newSpanId = (): string => random(SPAN_BYTES);
