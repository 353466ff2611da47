export type Backoff = { readonly firstMs: number; readonly longestMs: number };

/** How long to wait after so many failures in a row, of which there is one at least: doubling, up to the longest. */
export const backoffMs = (failures: number, { firstMs, longestMs }: Backoff): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1));

/** Between half of it and all, so that those who failed together do not come back together. `random` is below 1. */
export const spreadMs = (ms: number, random: number): number => ms * (0.5 + random / 2);
