const MINUTE_MS = 60_000;
const digits = (count: number, width: number): readonly string[] => Array.from({ length: count }, (_, value) => String(value).padStart(width, '0'));
const SECONDS = digits(60, 2);
const MILLISECONDS = digits(1000, 3);

let lastMs = Number.NaN;
let lastTime = '';
let minute = Number.NaN;
/** Of the minute, up to its colon: `2026-11-23T16:31:`. */
let beginning = '';

/**
 * A time in UTC, of milliseconds since 1970, as `Date.prototype.toISOString` writes it. That takes half of what an item of a listing
 * costs; of times near each other, as in listings and in the audit log, this takes a third or less of it. Throws a RangeError for what
 * is no time.
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
