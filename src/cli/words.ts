/** Times and counts as people write them. */

/** `1 agent`, `2 agents`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`;

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** `24 hours`, `3 minutes`. */
export function coarse(ms: number): string {
  for (const [unit, unitMs] of UNITS) {
    const count = Math.round(ms / unitMs);
    if (unit === 'day' ? count > 1 : count > 0) return counted(count, unit);
  }
  return 'a minute';
}

const BRIEF_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** `4d`, `12s`: the largest unit of which there is a whole one. */
export function brief(ms: number): string {
  const [unit, unitMs] = BRIEF_UNITS.find(([, least]) => ms >= least) ?? (['s', 1000] as const);
  return `${Math.floor(ms / unitMs)}${unit}`;
}
