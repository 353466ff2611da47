/** Largest message of a method, in bytes; also the largest single check of a batch. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Largest batch, in bytes. */
export const MAX_BATCH_BYTES = 4 * MAX_MESSAGE_BYTES;
/** Most checks in a batch, which is the only list of a request. */
export const MAX_BATCH_ITEMS = 1000;
/** The longest time that a timer of Node.js waits, in ms: nearly 25 days. Asked for longer, it ends at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** A shutdown waits for a request that is being sent until nothing more has come for so long. */
export const STALLED_MS = 2_000;
