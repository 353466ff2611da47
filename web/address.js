/** What a view is asked to show stands in its address: a reload keeps it, and a link says it to others. */
import { query } from './api.js';

/** @typedef {HTMLInputElement | HTMLSelectElement} Control */

/**
 * Safari refuses more than a hundred changes of the address in ten seconds; a key that is held asks for three times as
 * many.
 */
const ASK_AGAIN_MS = 1_000;

/**
 * Sets the controls to what the address asks for, and has the address follow them. Going back leads out of the view,
 * not through every letter that was typed.
 *
 * @param {string} path of the view, as `#/audit`
 * @param {URLSearchParams} asked
 * @param {Readonly<Record<string, Control>>} controls by their names in the address
 */
export function keepInAddress(path, asked, controls) {
  const named = Object.entries(controls);
  for (const [name, control] of named) write(control, asked.get(name) ?? '');
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  const follow = () => {
    clearTimeout(again);
    // Another view may have been opened meanwhile, or this one anew.
    if (!named.some(([, control]) => control.isConnected)) return;
    // A link has been followed, and its view is about to be shown.
    const [shown] = location.hash.split('?', 1);
    if (shown?.startsWith('#/') && shown !== path) return;
    try {
      history.replaceState(
        null,
        '',
        `${path}${query(named.map(([name, control]) => /** @type {const} */ ([name, read(control)])))}`,
      );
    } catch {
      again = setTimeout(follow, ASK_AGAIN_MS);
    }
  };
  for (const [, control] of named) control.addEventListener('input', follow);
}

/**
 * Calls the listener when one of the controls has another value: chosen, or typed and left; or emptied, since the cross
 * in a search field makes no `change` event until the field is left.
 *
 * @param {readonly Control[]} controls
 * @param {() => unknown} listener
 */
export function whenSet(controls, listener) {
  for (const control of controls) {
    control.addEventListener('change', listener);
    if (control.type === 'search')
      control.addEventListener('input', () => {
        if (control.value === '') listener();
      });
  }
}

/**
 * What the control says to the gateway and in the address; a local time as the moment it is. @param {Control} control
 * @returns {string}
 */
export function read(control) {
  if (control.type !== 'datetime-local') return control.value.trim();
  return control.value === '' ? '' : new Date(control.value).toISOString();
}

/** @param {Control} control @param {string} value */
function write(control, value) {
  control.value = control.type === 'datetime-local' ? localTime(value) : value;
  // A choice that is none leaves nothing chosen.
  if (control instanceof HTMLSelectElement && control.selectedIndex === -1) control.selectedIndex = 0;
}

/** As a control takes it: local, without a zone. @param {string} rfc3339 */
function localTime(rfc3339) {
  const ms = Date.parse(rfc3339);
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
