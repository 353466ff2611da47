/** Times as they are written on a command line: a date, or how far from now it is. */
import { isOnCalendar } from '../core/calendar.ts';
import { usageError } from './errors.ts';

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
