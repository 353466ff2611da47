import { isOnCalendar } from '../../core/base/time.ts';
import { usageError } from '../errors.ts';

// Times as they are written on a command line: a date, or how far from now it is.

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time, or how long ago it was: `2026-01-31T12:00:00Z`, `15m`. A usage error for anything else. */
export const timeAgo = (flag: string, text: string | undefined, nowMs: number): string | undefined =>
  timeOf(
    text,
    (awayMs) => nowMs - awayMs,
    `${flag} must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 15m, 2h or 7d`,
  );

/** Reads a time, or how long it is until then: `2027-01-31T12:00:00Z`, `90d`. A usage error for anything else. */
export const timeAhead = (flag: string, text: string | undefined, nowMs: number): string | undefined =>
  timeOf(
    text,
    (awayMs) => nowMs + awayMs,
    `${flag} must be a time such as 2027-01-31T12:00:00Z, or how long from now, such as 12h or 90d`,
  );

function timeOf(text: string | undefined, fromNow: (awayMs: number) => number, problem: string): string | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = unit === undefined ? msOfTime(text) : fromNow(Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) throw usageError(problem);
  return new Date(ms).toISOString();
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/i;

/**
 * JavaScript would read `5` as a day in 2001, and a time without a zone as local although a date without a time is UTC.
 * Here both are UTC, in which every time is shown.
 */
function msOfTime(text: string): number {
  const [, date = '', time = '00:00', zone = 'Z'] = TIME.exec(text) ?? [];
  return isOnCalendar(date) ? Date.parse(`${date}T${time}${zone.toUpperCase()}`) : Number.NaN;
}

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

/** An amount as answers have it; undefined for anything else. */
export function usd(value: unknown): string | undefined {
  if (typeof value !== 'number') return undefined;
  const digits = Math.abs(value) < 0.01 && value !== 0 ? 6 : 2;
  return `$${value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
