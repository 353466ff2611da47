/**
 * Times in conditions, to the nanosecond and within the bounds of CEL. Nothing here depends on the clock of the machine
 * or its time zone.
 */
import { localClock, msOfRfc3339 } from '../base/time.ts';
import { Duration, Failure, Timestamp } from './values.ts';

const NS_PER_MS = 1_000_000n;
const NS_PER_S = 1_000_000_000n;
const FIRST_NS = -62_135_596_800n * NS_PER_S; // the year 1
const END_NS = 253_402_300_800n * NS_PER_S; // the year 10,000
const MAX_DURATION_NS = 2n ** 63n - 1n;

const BEYOND_TIME = new Failure('this time is not within the years 1 to 9999');
const BEYOND_DURATION = new Failure('this duration is longer than 292 years');
const NO_TIME = new Failure(
  'timestamp() requires an RFC 3339 time such as 2026-01-31T12:00:00Z, or seconds since 1970',
);
const NO_DURATION = new Failure('duration() requires a string such as "1h30m", of the units h, m, s, ms, us and ns');
const NO_ZONE = new Failure('a time zone must be an IANA name such as Europe/Berlin, or an offset such as +02:00');

const timeAt = (ns: bigint, otherwise = BEYOND_TIME): Timestamp | Failure =>
  ns >= FIRST_NS && ns < END_NS ? new Timestamp(ns) : otherwise;

const durationOf = (ns: bigint): Duration | Failure =>
  ns > MAX_DURATION_NS || ns < -MAX_DURATION_NS ? BEYOND_DURATION : new Duration(ns);

export function parseTimestamp(text: string): Timestamp | Failure {
  const ms = msOfRfc3339(text);
  if (ms === undefined) return NO_TIME;
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? '';
  const seconds = BigInt(Math.floor(ms / 1000));
  return timeAt(seconds * NS_PER_S + BigInt(fraction.slice(0, 9).padEnd(9, '0')), NO_TIME);
}

export const timestampOfSeconds = (seconds: bigint): Timestamp | Failure => timeAt(seconds * NS_PER_S, NO_TIME);

export const secondsOf = ({ ns }: Timestamp): bigint => floorDivide(ns, NS_PER_S);

function floorDivide(a: bigint, b: bigint): bigint {
  const whole = a / b;
  return a % b < 0n ? whole - 1n : whole;
}

export function writtenTimestamp({ ns }: Timestamp): string {
  const seconds = new Date(msOf(ns)).toISOString().slice(0, 19);
  return `${seconds}${writtenFraction(ns - floorDivide(ns, NS_PER_S) * NS_PER_S)}Z`;
}

const writtenFraction = (ns: bigint): string => (ns === 0n ? '' : `.${String(ns).padStart(9, '0').replace(/0+$/, '')}`);

const UNITS: Readonly<Record<string, bigint>> = {
  h: 3600n * NS_PER_S,
  m: 60n * NS_PER_S,
  s: NS_PER_S,
  ms: NS_PER_MS,
  us: 1000n,
  µs: 1000n,
  ns: 1n,
};
const WHOLE_DURATION = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|µs|ns))+)$/;
const MAX_DURATION_LENGTH = 64;

export function parseDuration(text: string): Duration | Failure {
  if (text.length > MAX_DURATION_LENGTH || !WHOLE_DURATION.test(text)) return NO_DURATION;
  let ns = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of text.matchAll(/(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g)) {
    const size = UNITS[unit] ?? 0n;
    ns += BigInt(whole) * size + (BigInt(fraction) * size) / 10n ** BigInt(fraction.length);
  }
  return durationOf(text.startsWith('-') ? -ns : ns);
}

export function writtenDuration({ ns }: Duration): string {
  const size = ns < 0n ? -ns : ns;
  return `${ns < 0n ? '-' : ''}${size / NS_PER_S}${writtenFraction(size % NS_PER_S)}s`;
}

export const laterBy = (time: Timestamp, { ns }: Duration): Timestamp | Failure => timeAt(time.ns + ns);
export const earlierBy = (time: Timestamp, { ns }: Duration): Timestamp | Failure => timeAt(time.ns - ns);
export const between = (to: Timestamp, from: Timestamp): Duration | Failure => durationOf(to.ns - from.ns);
export const sumOf = (a: Duration, b: Duration): Duration | Failure => durationOf(a.ns + b.ns);
export const differenceOf = (a: Duration, b: Duration): Duration | Failure => durationOf(a.ns - b.ns);

const msOf = (ns: bigint): number => Number(floorDivide(ns, NS_PER_MS));
const DAY_MS = 24 * 3_600_000;
const dayOfYear = (local: Date): number => Math.floor((local.getTime() - new Date(local).setUTCMonth(0, 1)) / DAY_MS);

/** Reads parts of a local time that is written as if it were UTC. */
export const TIME_PARTS: Readonly<Record<string, (local: Date) => number>> = {
  getDate: (local) => local.getUTCDate(),
  getDayOfMonth: (local) => local.getUTCDate() - 1,
  getDayOfWeek: (local) => local.getUTCDay(),
  getDayOfYear: dayOfYear,
  getFullYear: (local) => local.getUTCFullYear(),
  getHours: (local) => local.getUTCHours(),
  getMilliseconds: (local) => local.getUTCMilliseconds(),
  getMinutes: (local) => local.getUTCMinutes(),
  getMonth: (local) => local.getUTCMonth(),
  getSeconds: (local) => local.getUTCSeconds(),
};

/** A duration as a whole, in each of these; of the milliseconds only what is left of a second. */
export const DURATION_PARTS: Readonly<Record<string, (ns: bigint) => bigint>> = {
  getHours: (ns) => ns / (3600n * NS_PER_S),
  getMinutes: (ns) => ns / (60n * NS_PER_S),
  getSeconds: (ns) => ns / NS_PER_S,
  getMilliseconds: (ns) => (ns / NS_PER_MS) % 1000n,
};

/** The time as the clock shows it in a zone, written as if it were UTC. */
export function localTime({ ns }: Timestamp, zone: string | undefined): Date | Failure {
  const ms = msOf(ns);
  if (zone === undefined) return new Date(ms);
  const clock = clockOf(zone);
  return clock === undefined ? NO_ZONE : new Date(clock(ms) + (clock.isWhole ? ((ms % 1000) + 1000) % 1000 : 0));
}

/** `isWhole`: it shows whole seconds only. */
type Clock = ((atMs: number) => number) & { readonly isWhole: boolean };

/** Agents may choose the zones, and a clock takes memory. */
const MAX_CLOCKS = 64;
const clocks = new Map<string, Clock>();

function clockOf(zone: string): Clock | undefined {
  const known = clocks.get(zone);
  if (known !== undefined) return known;
  const clock = clockAhead(zone) ?? namedClock(zone);
  if (clock === undefined) return undefined;
  if (clocks.size === MAX_CLOCKS) clocks.clear();
  clocks.set(zone, clock);
  return clock;
}

/** The engine throws a RangeError for a zone that it does not know. */
function namedClock(zone: string): Clock | undefined {
  try {
    return Object.assign(localClock(zone), { isWhole: true });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The clock of a zone that is named by how far it is ahead of UTC, which Node.js 20 does not know. */
function clockAhead(zone: string): Clock | undefined {
  const [, sign, hours, minutes] = /^([+-]?)([01]\d|2[0-3]):([0-5]\d)$/.exec(zone) ?? [];
  if (hours === undefined) return undefined;
  const aheadMs = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000);
  return Object.assign((atMs: number) => atMs + aheadMs, { isWhole: false });
}
