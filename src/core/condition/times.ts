/**
 * Times in conditions. The CEL library reads a text as JavaScript does, which takes the 30th of February for the 2nd of
 * March and a text without a zone for local time, and for days of the year and other zones it computes on the clock of
 * the machine. So what a condition says would depend on where the gateway runs.
 */
import { localClock, msOfRfc3339 } from '../base/time.ts';
import type { OwnFunction } from './problem.ts';

const DAY_MS = 24 * 3_600_000;

const dayOfYear = (local: Date): number => Math.floor((local.getTime() - new Date(local).setUTCMonth(0, 1)) / DAY_MS);

/** Of a local time that is written as if it were UTC. */
const PARTS: Readonly<Record<string, (local: Date) => number>> = {
  getDate: (local) => local.getUTCDate(),
  getDayOfMonth: (local) => local.getUTCDate() - 1,
  getDayOfWeek: (local) => local.getUTCDay(),
  getDayOfYear: dayOfYear,
  getFullYear: (local) => local.getUTCFullYear(),
  getHours: (local) => local.getUTCHours(),
  getMinutes: (local) => local.getUTCMinutes(),
  getMonth: (local) => local.getUTCMonth(),
  getSeconds: (local) => local.getUTCSeconds(),
};

const TIMESTAMP = 'google.protobuf.Timestamp';

/** Without a zone the library is right, but for the day of the year. */
export const TIME_FUNCTIONS: readonly OwnFunction[] = [
  [`timestamp(string): ${TIMESTAMP}`, (text: string) => timeOf(msOfRfc3339(text))],
  [`timestamp(int): ${TIMESTAMP}`, (seconds: bigint) => timeOf(Number(seconds) * 1000)],
  [`${TIMESTAMP}.getDayOfYear(): int`, (time: Date) => BigInt(dayOfYear(time))],
  ...Object.entries(PARTS).map(
    ([name, partOf]): OwnFunction => [
      `${TIMESTAMP}.${name}(string): int`,
      (time: Date, zone: string) => BigInt(partOf(new Date(clockOf(zone)(time.getTime())))),
    ],
  ),
];

// The bounds of CEL.
const YEAR_1_MS = -62_135_596_800_000;
const YEAR_10000_MS = Date.UTC(10_000, 0);

function timeOf(ms: number | undefined): Date {
  if (ms === undefined || ms < YEAR_1_MS || ms >= YEAR_10000_MS)
    throw new Error('timestamp() requires an RFC 3339 time such as 2026-01-31T12:00:00Z, or seconds since 1970');
  return new Date(ms);
}

type LocalClock = ReturnType<typeof localClock>;

/** Agents may choose the zones, and a clock takes memory. */
const MAX_CLOCKS = 64;
const clocks = new Map<string, LocalClock>();

function clockOf(zone: string): LocalClock {
  const known = clocks.get(zone);
  if (known !== undefined) return known;
  const clock = clockAhead(zone) ?? namedClock(zone);
  if (clocks.size === MAX_CLOCKS) clocks.clear();
  clocks.set(zone, clock);
  return clock;
}

/**
 * The engine's message would repeat the text, which an agent may have sent, and the reason of a failed condition is
 * logged.
 */
function namedClock(zone: string): LocalClock {
  try {
    return localClock(zone);
  } catch {
    throw new Error('a time zone must be an IANA name such as Europe/Berlin, or an offset such as +02:00');
  }
}

/**
 * The clock of a zone that is named by how far it is ahead of UTC, which Node.js 20 does not know; undefined for any
 * other.
 */
function clockAhead(zone: string): LocalClock | undefined {
  const [, sign, hours, minutes] = /^([+-]?)([01]\d|2[0-3]):([0-5]\d)$/.exec(zone) ?? [];
  if (hours === undefined) return undefined;
  const aheadMs = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000);
  return (atMs) => atMs + aheadMs;
}
