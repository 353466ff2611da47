import type { Clock } from './ports.ts';

const PAUSE_MS = 60_000;

/**
 * Throttles a log line that anybody can cause as often as they like: it is written at once, and then not again for a
 * minute. The next line says how many were left out, as `more`.
 */
export function throttle(clock: Clock, write: (fields: object) => void): (fields?: object) => void {
  let writtenAtMs = -Infinity;
  let more = 0;
  return (fields = {}) => {
    const nowMs = clock.nowMs();
    if (nowMs >= writtenAtMs && nowMs - writtenAtMs < PAUSE_MS) {
      more += 1;
      return;
    }
    write(more === 0 ? fields : { ...fields, more });
    writtenAtMs = nowMs;
    more = 0;
  };
}
