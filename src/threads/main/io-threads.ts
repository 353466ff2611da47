import { sumOfDurations } from '../durations.ts';
import type { IoStats } from '../protocol.ts';

export const NO_STATS: IoStats = {
  pendingRequests: 0,
  webSockets: 0,
  controlStreams: 0,
  droppedEvents: 0,
  refusedRequests: 0,
  requests: { http: 0, grpc: 0, connect: 0 },
  checks: { counts: [], sumMs: 0 },
};

/** Adds the counts of a thread that died to those of others before it. */
export const leftBy = (last: IoStats, others: IoStats): IoStats => ({
  pendingRequests: 0,
  webSockets: 0,
  controlStreams: 0,
  droppedEvents: last.droppedEvents + others.droppedEvents,
  refusedRequests: last.refusedRequests + others.refusedRequests,
  requests: {
    http: last.requests.http + others.requests.http,
    grpc: last.requests.grpc + others.requests.grpc,
    connect: last.requests.connect + others.requests.connect,
  },
  checks: sumOfDurations([last.checks, others.checks]),
});
