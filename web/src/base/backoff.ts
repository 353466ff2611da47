const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;

/**
 * How long to wait before something is tried again, after it has failed so often; spread, so that all pages do not come
 * back together.
 */
export const backoffMs = (attempts: number): number =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts) * (0.5 + Math.random() / 2);
