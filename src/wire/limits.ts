/** Largest message of a method, in bytes; also the largest single check of a batch. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Largest batch, in bytes: it holds up to a thousand checks. */
export const MAX_BATCH_BYTES = 4 * MAX_MESSAGE_BYTES;
