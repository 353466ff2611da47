const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/**
 * How long to wait before something is tried again; spread, so that all pages do not come back together. @param
 * {number} attempts how often it failed before
 */
export const backoffMs = (attempts) =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts) * (0.5 + Math.random() / 2);
