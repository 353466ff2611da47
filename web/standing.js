/** What stands until a person ends it, above every view: halts in force, and requests that wait for an approval. */
import { Problem } from './api.js';
import { h, parts, replace } from './dom.js';
import { dateTime, plural, SLASH } from './format.js';
import { callOfThisVisit } from './session.js';

/** More than these nobody reads at a glance. */
const NAMED = 3;
/** As many are counted. */
const COUNTED = 100;
/** Events come in bursts, and what they change is read as a whole. */
const AFTER_EVENT_MS = 500;

/**
 * @typedef {{ scope: string, mode: string, actions: readonly string[], reason: string, expires_at: string | null }} Halt
 */

export function standing() {
  const call = callOfThisVisit();
  const element = h('aside', { class: 'standing', 'aria-label': 'Halts and approvals', hidden: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let readings = 0;

  async function read() {
    readings += 1;
    const reading = readings;
    try {
      const [{ halts, next_cursor: more }, approvals] = await Promise.all([
        call('GET', `/api/v1/halts?active=true&per_page=${COUNTED}`),
        call('GET', `/api/v1/approvals?state=pending&per_page=${COUNTED}`),
      ]);
      if (reading !== readings) return;
      const waiting = approvals.approvals.length;
      replace(
        element,
        halts.length === 0 ? null : haltLine(halts, more !== null),
        waiting === 0 ? null : approvalLine(waiting, approvals.next_cursor !== null),
      );
      element.hidden = halts.length === 0 && waiting === 0;
    } catch (error) {
      // Without the gateway the header says so, and this is read again when the stream is back.
      if (!(error instanceof Problem)) throw error;
    }
  }

  return {
    element,
    read,
    readSoon() {
      timer ??= setTimeout(() => {
        timer = undefined;
        void read();
      }, AFTER_EVENT_MS);
    },
    dispose() {
      clearTimeout(timer);
      readings += 1;
    },
  };
}

/** @param {readonly Halt[]} halts the newest first @param {boolean} isMore */
function haltLine(halts, isMore) {
  const named = halts.slice(0, NAMED);
  const left = halts.length - named.length;
  return h(
    'p',
    null,
    h('strong', null, `${isMore ? 'More than ' : ''}${plural(halts.length, 'halt')} in force: `),
    ...named.flatMap((halt, at) => [at === 0 ? '' : '; ', ...textOf(halt)]),
    left > 0 ? `; and ${left} more.` : '.',
    ' ',
    h('code', null, 'svc halts ls'),
  );
}

/** @param {Halt} halt @returns {readonly (Node | string)[]} */
const textOf = ({ scope, mode, actions, reason, expires_at: end }) => [
  h('bdi', null, parts(scope.replaceAll('/', SLASH), SLASH)),
  actions.length === 1 && actions[0] === '*' ? '' : ` (${actions.join(', ')})`,
  mode === 'pause' ? ' paused' : '',
  ' – ',
  h('bdi', null, reason),
  end === null ? '' : `, until ${dateTime(end)}`,
];

/** @param {number} waiting @param {boolean} isMore */
const approvalLine = (waiting, isMore) =>
  h(
    'p',
    null,
    h(
      'strong',
      null,
      `${isMore ? 'More than ' : ''}${plural(waiting, 'request waits', 'requests wait')} for an approval.`,
    ),
    ' Decide with ',
    h('code', null, 'svc approvals watch'),
  );
