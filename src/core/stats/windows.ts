/** The spans of time that statistics are shown for (docs/spec.md, Statistics). */
export const WINDOWS = {
  '15m': { minutes: 15, points: 'minutes' },
  '1h': { minutes: 60, points: 'minutes' },
  '24h': { minutes: 1_440, points: 'minutes' },
  '7d': { minutes: 7 * 1_440, points: 'hours' },
  '30d': { minutes: 30 * 1_440, points: 'hours' },
} as const;
export type StatsWindow = keyof typeof WINDOWS;
export const STATS_WINDOWS = Object.keys(WINDOWS) as readonly StatsWindow[];
export const DEFAULT_WINDOW: StatsWindow = '24h';
