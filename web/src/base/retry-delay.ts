import { type Backoff, backoffMs, spreadMs } from '../../../src/core/base/backoff.ts';

const RETRY: Backoff = { firstMs: 500, longestMs: 5_000 };

/** How long to wait before something is tried again that has failed so often in a row. */
export const retryDelayMs = (failures: number): number => spreadMs(backoffMs(failures, RETRY), Math.random());
