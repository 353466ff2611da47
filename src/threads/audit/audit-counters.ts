/** What the thread that writes the audit log tells the others in shared memory, by the place in an `Int32Array`. */

/** The number of the last batch written. Whoever waits for it is notified (`Atomics.waitAsync`). */
export const WRITTEN = 0;
/** How often what was handed over has failed to be written: what comes after a failure has another count. */
export const FAILURES = 1;
/** 1 while the share of the log that is for callers that are not identified is used up. */
export const SHARE_FULL = 2;
export const COUNTERS_BYTES = 3 * Int32Array.BYTES_PER_ELEMENT;
