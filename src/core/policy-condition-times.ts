/**
 * Times in conditions. The CEL library reads a text as JavaScript does, which takes the 30th of February for the 2nd of March and
 * a text without a zone for local time, and for days of the year and other zones it computes on the clock of the machine. So
 * what a condition says would depend on where the gateway runs. Instead, such calls are redirected to the functions here.
 */
import { localClock } from './local-clock.ts';
import type { ConditionProblem, TimeCall } from './policy-condition-cost.ts';
import { msOfRfc3339 } from './rfc3339.ts';

/** The part of the library's environment that matters here. */
type Functions = { registerFunction(signature: string, run: (...args: never[]) => unknown, options: { readonly async: false }): unknown };

const TIMESTAMP = 'google.protobuf.Timestamp';
const SUFFIX = 'OnAnyClock'; // no name of a function that conditions may call ends so

/** The same message, with the names that an author has written. */
export const withWrittenNames = (message: string): string => message.replaceAll(SUFFIX, '');

/** Of a local time that is written as if it were UTC. */
const PARTS: Readonly<Record<string, (local: Date) => number>> = {
  getDate: (local) => local.getUTCDate(),
  getDayOfMonth: (local) => local.getUTCDate() - 1,
  getDayOfWeek: (local) => local.getUTCDay(),
  getDayOfYear: (local) => Math.floor((local.getTime() - new Date(local).setUTCMonth(0, 1)) / DAY_MS),
  getFullYear: (local) => local.getUTCFullYear(),
  getHours: (local) => local.getUTCHours(),
  getMinutes: (local) => local.getUTCMinutes(),
  getMonth: (local) => local.getUTCMonth(),
  getSeconds: (local) => local.getUTCSeconds(),
};
const DAY_MS = 24 * 3_600_000;

export function registerTimes(environment: Functions): void {
  environment.registerFunction(`timestamp${SUFFIX}(string): ${TIMESTAMP}`, (text: string) => timeOf(msOfRfc3339(text)), { async: false });
  environment.registerFunction(`timestamp${SUFFIX}(int): ${TIMESTAMP}`, (seconds: bigint) => timeOf(Number(seconds) * 1000), { async: false });
  for (const [name, partOf] of Object.entries(PARTS)) {
    environment.registerFunction(`${TIMESTAMP}.${name}${SUFFIX}(): int`, (time: Date) => BigInt(partOf(time)), { async: false });
    environment.registerFunction(`${TIMESTAMP}.${name}${SUFFIX}(string): int`, (time: Date, zone: string) => BigInt(partOf(new Date(clockOf(zone)(time.getTime())))), { async: false });
  }
}

// The bounds of CEL.
const YEAR_1_MS = -62_135_596_800_000;
const YEAR_10000_MS = Date.UTC(10_000, 0);

const TIME_RULE = 'timestamp() takes an RFC 3339 time such as 2026-01-31T12:00:00Z, or seconds since 1970';

const isTime = (ms: number | undefined): ms is number => ms !== undefined && ms >= YEAR_1_MS && ms < YEAR_10000_MS;

function timeOf(ms: number | undefined): Date {
  if (!isTime(ms)) throw new Error(TIME_RULE);
  return new Date(ms);
}

/** Agents may choose the zones, and a clock takes memory. */
const MAX_CLOCKS = 64;
const clocks = new Map<string, ReturnType<typeof localClock>>();

function clockOf(zone: string): ReturnType<typeof localClock> {
  const known = clocks.get(zone);
  if (known !== undefined) return known;
  const clock = localClock(zone);
  if (clocks.size === MAX_CLOCKS) clocks.clear();
  clocks.set(zone, clock);
  return clock;
}

/** Whether a call of this function is to be redirected. What a duration or a time in UTC is asked for, the library answers right. */
export const isOfTime = (name: string, isMethod: boolean, argCount: number): boolean =>
  (isMethod ? name === 'getDayOfYear' || (Object.hasOwn(PARTS, name) && argCount === 1) : name === 'timestamp');

/** Redirects the call. A time that is written out and is none is a mistake of the author. */
export function redirectTime(call: TimeCall): readonly ConditionProblem[] {
  const [name, ...rest] = call.args;
  const [written] = call.op === 'call' ? call.args[1] : [];
  if (written?.op === 'value' && typeof written.args === 'string' && !isTime(msOfRfc3339(written.args))) return [{ offset: written.start, problem: TIME_RULE }];
  (call as { args: unknown }).args = [`${name}${SUFFIX}`, ...rest];
  return [];
}
