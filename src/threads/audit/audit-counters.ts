/** Counters that the audit thread shares with other threads, by the place in an `Int32Array`. */

/** The number of the last batch written. Waiting threads are notified (`Atomics.waitAsync`). */
export const WRITTEN = 0;
/** How often what was handed over has failed to be written: what comes after a failure has another count. */
export const FAILURES = 1;
export const COUNTERS_BYTES = 2 * Int32Array.BYTES_PER_ELEMENT;
