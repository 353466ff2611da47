/**
 * Returns the clock of an IANA time zone: it turns an instant into the local time, to the second, written as if it were
 * UTC. Throws a RangeError for a zone that the engine does not know.
 */
export function localClock(timezone: string): (atMs: number) => number {
  // Most have this one, and a calendar takes long to load.
  if (timezone === 'UTC') return (atMs) => Math.floor(atMs / 1000) * 1000;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (atMs) => {
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of format.formatToParts(atMs)) parts[type] = Number(value);
    const { year = NaN, month = NaN, day = NaN, hour = NaN, minute = NaN, second = NaN } = parts;
    // Date.UTC would take the year 50 for 1950.
    return new Date(0).setUTCFullYear(year, month - 1, day) + ((hour * 60 + minute) * 60 + second) * 1000;
  };
}

/** Whether a date such as `2026-01-31` exists. JavaScript reads the 30th of February as the 2nd of March. */
export function isOnCalendar(day: string): boolean {
  const ms = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

const MINUTE_MS = 60_000;
const digits = (count: number, width: number): readonly string[] =>
  Array.from({ length: count }, (_, value) => String(value).padStart(width, '0'));
const SECONDS = digits(60, 2);
const MILLISECONDS = digits(1000, 3);

let lastMs = Number.NaN;
let lastTime = '';
let minute = Number.NaN;
/** The current minute, up to its colon: `2026-11-23T16:31:`. */
let beginning = '';

/**
 * Formats milliseconds since 1970 in UTC, as `Date.prototype.toISOString` does. That would be half of the cost of an
 * item in a listing; for times near each other, as in listings and the audit log, this takes at most a third as long.
 * Throws a RangeError for an invalid time.
 */
export function rfc3339(ms: number): string {
  if (ms === lastMs) return lastTime;
  const of = Math.floor(ms / MINUTE_MS);
  if (of !== minute) {
    beginning = new Date(of * MINUTE_MS).toISOString().slice(0, -'00.000Z'.length);
    minute = of;
  }
  const rest = Math.trunc(ms - of * MINUTE_MS);
  lastTime = `${beginning}${SECONDS[Math.trunc(rest / 1000)]!}.${MILLISECONDS[rest % 1000]!}Z`;
  lastMs = ms;
  return lastTime;
}

const TIME = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):\d\d)$/i;
const YEAR_10000_MS = Date.UTC(10_000, 0);
const YEAR_0_MS = Date.parse('0000-01-01T00:00:00Z');

/**
 * Milliseconds since 1970; undefined if the text is not an RFC 3339 time, or its year in UTC does not have four digits.
 */
export function msOfRfc3339(text: string): number | undefined {
  const ms = TIME.test(text) && isOnCalendar(text.slice(0, 10)) ? Date.parse(text) : Number.NaN;
  return ms >= YEAR_0_MS && ms < YEAR_10000_MS ? ms : undefined;
}
