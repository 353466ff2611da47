/** Durations as authors of policies write them: `90s`, `15m`, `2h`, `1d`. */

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: MINUTE_MS, h: 60 * MINUTE_MS, d: DAY_MS };

/** Parses a duration; undefined for any other text. */
export function durationMs(text: unknown): number | undefined {
  const [, count, unit] = (typeof text === 'string' ? /^([1-9]\d{0,6})([smhd])$/.exec(text) : null) ?? [];
  return count === undefined || unit === undefined ? undefined : Number(count) * (UNITS[unit] ?? Number.NaN);
}

/** Writes it in the largest unit that needs no fraction. */
export function durationText(ms: number): string {
  const [unit, unitMs] = Object.entries(UNITS).findLast(([, each]) => ms % each === 0) ?? ['s', 1000];
  return `${ms / unitMs}${unit}`;
}
