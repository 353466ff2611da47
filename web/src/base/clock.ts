/**
 * The gateway's time: what it tells of the past is measured by its own clock, and that of this browser may be hours
 * off.
 */

/** An answer says its time in whole seconds, and is some time on its way. */
const SAME_WITHIN_MS = 5_000;

let aheadMs = 0;

/** Takes when an answer was made, as its header says. */
export function learnTime(date: string | null): void {
  const differenceMs = date === null ? Number.NaN : Date.now() - Date.parse(date);
  if (!Number.isNaN(differenceMs)) aheadMs = Math.abs(differenceMs) < SAME_WITHIN_MS ? 0 : differenceMs;
}

export const nowMs = (): number => Date.now() - aheadMs;
