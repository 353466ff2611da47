/** Notices: lines that come, are counted while they come again, and go away by themselves. */
import { Problem } from './api.js';
import { button, h, replace } from './dom.js';

const NOTICE_MS = 6_000;
/** Many at once say no more than a few. */
const MAX_NOTICES = 4;

/**
 * @typedef {string | readonly (Node | string)[] | Node} Said names in it are in parts, so that none moves another from
 * its place
 */

/**
 * Those that are shown, by what they say, the oldest first. @type {Map<string, { again: () => void, go: () => void,
 * goSoon: () => void }>}
 */
const shownNotices = new Map();
document.addEventListener('visibilitychange', () => {
  for (const { goSoon } of shownNotices.values()) goSoon();
});

/**
 * What became of something that the operator did, in a line that goes away by itself.
 *
 * @param {Said} text
 * @param {'info' | 'error'} [kind]
 */
export function notify(text, kind = 'info') {
  const said = h('span', null, text);
  shownNotices.get(keyOf(said, kind))?.go();
  showNotice(said, kind);
}

/**
 * Something that happens by itself. While its notice is shown, repeats are only counted: a hundred a second would push
 * out all other notices, and a screen reader would read nothing else.
 *
 * @param {Said} text
 * @param {'info' | 'error'} kind
 */
export function notifyOfEvent(text, kind) {
  const said = h('span', null, text);
  const known = shownNotices.get(keyOf(said, kind));
  if (known === undefined) showNotice(said, kind);
  else known.again();
}

/** @param {HTMLElement} said @param {string} kind */
const keyOf = (said, kind) => `${kind} ${said.textContent}`;

/** @param {HTMLElement} said @param {'info' | 'error'} kind */
function showNotice(said, kind) {
  const times = h('span', { class: 'times number', 'aria-live': 'off' });
  const notice = h(
    'div',
    { class: `notice ${kind}` },
    said,
    times,
    button('×', go, { class: 'plain', 'aria-label': 'Dismiss' }),
  );
  const key = keyOf(said, kind);
  let count = 1;
  let isRead = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function go() {
    clearTimeout(timer);
    shownNotices.delete(key);
    notice.remove();
  }
  /**
   * Not while it is being read, nor while the page is hidden: work of minutes may end then. @param {boolean}
   * [isReader]
   */
  function goSoon(isReader = isRead) {
    isRead = isReader;
    clearTimeout(timer);
    if (!isRead && !document.hidden) timer = setTimeout(go, NOTICE_MS);
  }
  function again() {
    count += 1;
    replace(times, `${count} times`);
    goSoon();
  }
  for (const type of ['pointerenter', 'focusin']) notice.addEventListener(type, () => goSoon(true));
  for (const type of ['pointerleave', 'focusout']) notice.addEventListener(type, () => goSoon(false));
  goSoon();
  document.getElementById('notices')?.append(notice);
  shownNotices.set(key, { again, go, goSoon });
  if (shownNotices.size > MAX_NOTICES) shownNotices.values().next().value?.go();
}

/** @param {unknown} error @returns {string} */
export function messageOf(error) {
  if (!(error instanceof Problem)) throw error;
  // A sentence begins with a capital; the name of a field, `expires_at: …`, does not.
  const message = error.message.replace(/^[a-z]+(?= )/, (word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
  const retry = error.body.retry_after_secs;
  if (typeof retry !== 'number' || retry <= 60) return message;
  const [seconds, minutes] = [`${retry} seconds`, `${Math.ceil(retry / 60)} minutes`];
  return message.includes(seconds) ? message.replace(seconds, minutes) : `${message} (try again in ${minutes})`;
}

/** Runs an action of the operator's, with a notice when it fails. @param {() => Promise<unknown>} action */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    notify(messageOf(error), 'error');
    return false;
  }
}
