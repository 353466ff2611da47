/** Times, money and names as people read them. */
import { nowMs } from './clock.ts';

/** The largest unit, and what is left over in the next one: `['8 min', '05 s']`. */
function unitsOf(ms: number): readonly [string, string?] {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return [`${seconds} s`];
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return [`${minutes} min`, `${String(seconds % 60).padStart(2, '0')} s`];
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? [`${hours} h`, `${String(minutes % 60).padStart(2, '0')} min`]
    : [`${Math.floor(hours / 24)} days`];
}

/** How long something has lasted. */
export const duration = (ms: number): string => unitsOf(ms).join(' ');

/**
 * The browser's own, where that is written from left to right as this page is: the parts of any other would change
 * places in it.
 */
const LANGUAGE = /[\u0590-\u08ff]/.test(new Intl.DateTimeFormat(undefined, { month: 'long' }).format())
  ? 'en'
  : undefined;

const DAY_AND_TIME = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' });
const SHORT = {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const;
const SHORT_TIME = new Intl.DateTimeFormat(LANGUAGE, SHORT);
const SHORT_TIME_OF_A_YEAR = new Intl.DateTimeFormat(LANGUAGE, { ...SHORT, year: 'numeric' });
const CLOCK = new Intl.DateTimeFormat(LANGUAGE, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const CLOCK_OF_A_DAY = new Intl.DateTimeFormat(LANGUAGE, {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});

/** The zone in which times are shown and taken, as `Europe/Berlin`. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** With its zone. */
export const dateTime = (rfc3339: string | null | undefined): string =>
  rfc3339 === null || rfc3339 === undefined ? '–' : DAY_AND_TIME.format(new Date(rfc3339));

/** To the second, and with its year where that is another than this. */
export function shortTime(rfc3339: string): string {
  const time = new Date(rfc3339);
  return (time.getFullYear() === new Date(nowMs()).getFullYear() ? SHORT_TIME : SHORT_TIME_OF_A_YEAR).format(time);
}

/** Hours and minutes; with the day where that is another than today. */
export function clockTime(ms: number): string {
  const time = new Date(ms);
  return (time.toDateString() === new Date(nowMs()).toDateString() ? CLOCK : CLOCK_OF_A_DAY).format(time);
}

/** No finer than its largest unit, because it does not go on counting. */
export function ago(rfc3339: string | null | undefined): string {
  if (rfc3339 === null || rfc3339 === undefined) return 'never';
  const ms = nowMs() - Date.parse(rfc3339);
  return ms < 1_000 ? 'just now' : `${unitsOf(ms)[0]} ago`;
}

const DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
const SMALL_DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumFractionDigits: 6 });

export const money = (usd: number): string => (usd !== 0 && Math.abs(usd) < 0.01 ? SMALL_DOLLARS : DOLLARS).format(usd);

const WHOLE = new Intl.NumberFormat('en-US');
const FEW_DIGITS = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

export const count = (value: number): string => WHOLE.format(value);

/** Formats a measurement: three digits say enough. */
export const measured = (value: number): string => FEW_DIGITS.format(value);

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** Between the parts of an agent's name. No part holds it. */
export const SLASH = ' / ';

type Named = {
  readonly org_id?: string | null | undefined;
  readonly team_id?: string | null | undefined;
  readonly agent_id?: string | null | undefined;
};

export const agentName = ({ org_id: org, team_id: team, agent_id: agent }: Named): string =>
  [org || '–', team, agent].filter((part) => part !== null && part !== undefined && part !== '').join(SLASH);

/** The page of an agent; a dash stands for no org. */
export const agentPath = ({ org_id: org, team_id: team, agent_id: agent }: Named): string =>
  `/agents/${[org || '-', team ?? '', agent ?? ''].map(encodeURIComponent).join('/')}`;

/** The first characters of an id, with all of it on demand. */
export const shortId = (id: string): string => (id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`);
