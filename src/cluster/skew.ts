/** A gateway whose clock is further off than this does not join its cluster; one that drifts so far is degraded. */
export const MAX_SKEW_MS = 5_000;
