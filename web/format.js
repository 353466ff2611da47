/** Times, money and names as people read them. */
import { nowMs } from './clock.js';

/**
 * The largest unit, and what is left over in the next one: `['8 min', '05 s']`. @param {number} ms @returns {readonly
 * string[]}
 */
function unitsOf(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return [`${seconds} s`];
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return [`${minutes} min`, `${String(seconds % 60).padStart(2, '0')} s`];
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? [`${hours} h`, `${String(minutes % 60).padStart(2, '0')} min`]
    : [`${Math.floor(hours / 24)} days`];
}

/** @param {number} ms how long something has lasted */
export const duration = (ms) => unitsOf(ms).join(' ');

/**
 * The browser's own, where that is written from left to right as this page is: the parts of any other would change
 * places in it.
 */
const LANGUAGE = /[\u0590-\u08ff]/.test(new Intl.DateTimeFormat(undefined, { month: 'long' }).format())
  ? 'en'
  : undefined;

const DAY_AND_TIME = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' });
const SHORT = /** @type {const} */ ({
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});
const SHORT_TIME = new Intl.DateTimeFormat(LANGUAGE, SHORT);
const SHORT_TIME_OF_A_YEAR = new Intl.DateTimeFormat(LANGUAGE, { ...SHORT, year: 'numeric' });

/** The zone in which times are shown and taken, as `Europe/Berlin`. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** With its zone. @param {string | null | undefined} rfc3339 */
export const dateTime = (rfc3339) =>
  rfc3339 === null || rfc3339 === undefined ? '–' : DAY_AND_TIME.format(new Date(rfc3339));

/** With its zone, and with its year where that is another than this. @param {string} rfc3339 */
export function shortTime(rfc3339) {
  const time = new Date(rfc3339);
  return (time.getFullYear() === new Date(nowMs()).getFullYear() ? SHORT_TIME : SHORT_TIME_OF_A_YEAR).format(time);
}

/** No finer than its largest unit, because it does not go on counting. @param {string | null | undefined} rfc3339 */
export function ago(rfc3339) {
  if (rfc3339 === null || rfc3339 === undefined) return 'never';
  const ms = nowMs() - Date.parse(rfc3339);
  return ms < 1_000 ? 'just now' : `${unitsOf(ms)[0]} ago`;
}

const DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
const SMALL_DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumFractionDigits: 6 });

/** @param {number} usd */
export const money = (usd) => (usd !== 0 && Math.abs(usd) < 0.01 ? SMALL_DOLLARS : DOLLARS).format(usd);

const WHOLE = new Intl.NumberFormat('en-US');

/** @param {number} value */
export const count = (value) => WHOLE.format(value);

/**
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** Between the parts of an agent's name. No part holds it. */
export const SLASH = ' / ';

/** @param {{ org_id?: string | null, team_id?: string | null, agent_id?: string | null }} agent */
export const agentName = ({ org_id: org, team_id: team, agent_id: agent }) =>
  [org || '–', team, agent].filter((part) => part !== null && part !== undefined && part !== '').join(SLASH);
