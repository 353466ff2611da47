/** Largest message of a method, in bytes; also the largest single check of a batch. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Largest batch, in bytes. */
export const MAX_BATCH_BYTES = 4 * MAX_MESSAGE_BYTES;
/** Most checks in a batch, which is the only list of a request. */
export const MAX_BATCH_ITEMS = 1000;
/** The longest delay of a Node.js timer, in ms: nearly 25 days. A timer with a longer delay fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** A shutdown waits for an incoming request until it has stalled for this long. */
export const STALLED_MS = 2_000;
