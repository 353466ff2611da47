/** Whether the clock may be believed by what deletes things for their age. */

const DAY_MS = 24 * 60 * 60_000;

export type ClockGuardOptions = {
  /**
   * Times that were written down before this start, in their order: they show a leap that came while the gateway was
   * off.
   */
  readonly witnessedMs: readonly number[];
  /** Called when a leap is seen, with the times before and after it, in milliseconds since the Unix epoch. */
  readonly onLeap: (fromMs: number, toMs: number) => void;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
};

export type ClockGuard = { isBelieved(): boolean };

/**
 * Whether the clock may be believed when something is deleted for its age. If it has leapt ahead by more than a day, it
 * is wrong or the gateway was off. Deleted entries do not come back, so in both cases deletion waits until the gateway
 * has run for a day. A smaller leap makes an entry look older by no more than a day.
 */
export function createClockGuard({
  witnessedMs,
  onLeap,
  wallMs = Date.now,
  monotonicMs = () => performance.now(),
}: ClockGuardOptions): ClockGuard {
  let lastWallMs = wallMs();
  let lastMonotonicMs = monotonicMs();
  let believedFromMs = lastMonotonicMs;
  const leapt = (fromMs: number, toMs: number): void => {
    believedFromMs = lastMonotonicMs + DAY_MS;
    onLeap(fromMs, toMs);
  };
  const before = leapIn([...witnessedMs, lastWallMs], lastWallMs);
  if (before !== undefined) leapt(before.fromMs, before.toMs);
  return {
    isBelieved() {
      const wall = wallMs();
      const monotonic = monotonicMs();
      const expectedMs = lastWallMs + (monotonic - lastMonotonicMs);
      lastWallMs = wall;
      lastMonotonicMs = monotonic;
      if (wall - expectedMs > DAY_MS) leapt(expectedMs, wall);
      return monotonic >= believedFromMs;
    },
  };
}

/** The last leap, when it is no older than a day: after a restart the clock is still not believed. */
function leapIn(
  timesMs: readonly number[],
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } | undefined {
  for (let at = timesMs.length - 1; at > 0; at -= 1) {
    const [fromMs = 0, toMs = 0] = [timesMs[at - 1], timesMs[at]];
    if (nowMs - toMs > DAY_MS) return undefined;
    if (toMs <= nowMs && toMs - fromMs > DAY_MS) return { fromMs, toMs };
  }
  return undefined;
}
