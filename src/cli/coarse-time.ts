/** Times as people say them. */

const UNITS = [['day', 86_400_000], ['hour', 3_600_000], ['minute', 60_000]] as const;

/** `24 hours`, `3 minutes`. */
export function coarse(ms: number): string {
  for (const [unit, unitMs] of UNITS) {
    const count = Math.round(ms / unitMs);
    if (unit === 'day' ? count > 1 : count > 0) return `${count} ${unit}${count === 1 ? '' : 's'}`;
  }
  return 'a minute';
}
