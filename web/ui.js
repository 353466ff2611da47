/** What several views need: notices, dialogs, a secret shown once, lists that load page by page. */
import { Problem } from './api.js';
import { backoffMs } from './backoff.js';
import { button, h, replace, setText } from './dom.js';

const NOTICE_MS = 6_000;
/** The gateway gives no more rows at once. */
const MAX_PER_PAGE = 1_000;
const MORE = 'Load more';
/** Many at once say no more than a few. */
const MAX_NOTICES = 4;

/** @typedef {string | readonly (Node | string)[] | Node} Said names in it are in parts, so that none moves another from its place */

/** Those that are shown, by what they say, the oldest first. @type {Map<string, { again: () => void, go: () => void, goSoon: () => void }>} */
const shownNotices = new Map();
document.addEventListener('visibilitychange', () => { for (const { goSoon } of shownNotices.values()) goSoon(); });

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
 * Something that happens by itself. While it is told of, it is only counted: a hundred a second would push out all other
 * notices, and a screen reader would read nothing else.
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
  const notice = h('div', { class: `notice ${kind}` }, said, times, button('×', go, { class: 'plain', 'aria-label': 'Dismiss' }));
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
  /** Not while somebody is reading it, nor while nobody can: what takes minutes is not watched to its end. @param {boolean} [isReader] */
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

/** Runs an action of the operator's and tells when it failed. @param {() => Promise<unknown>} action */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    notify(messageOf(error), 'error');
    return false;
  }
}

/** What had the focus before a dialog was opened; where another dialog has opened it, before that one. @type {WeakMap<Element, Element | null>} */
const openers = new WeakMap();

/**
 * @param {string} title
 * @param {...(Node | string)} content
 */
function openDialog(title, ...content) {
  const dialog = h('dialog', { 'aria-label': title }, h('h2', null, title), content);
  const below = [...document.querySelectorAll('dialog')].at(-1);
  const opener = below === undefined ? document.activeElement : openers.get(below);
  openers.set(dialog, opener ?? null);
  dialog.addEventListener('close', () => {
    dialog.remove();
    // The browser gives the focus back to what has opened the dialog, but that may be gone.
    if (document.activeElement === document.body) focusOn(standIn(opener));
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** The element, or the one of its name that has come in its place when a list was read anew. @param {Element | null | undefined} element */
function standIn(element) {
  if (element?.isConnected === true) return element;
  const name = element?.getAttribute('aria-label') ?? '';
  return name === '' ? undefined : [...document.querySelectorAll('[aria-label]')].find((other) => other.getAttribute('aria-label') === name);
}

/** @param {Element | null | undefined} element without one, the view as a whole: the keyboard is not sent back to the top of the page */
function focusOn(element) {
  const target = element instanceof HTMLElement ? element : document.getElementById('main');
  target?.focus();
}

/**
 * Asks before something that cannot be undone. Resolves with true when the operator means it.
 *
 * @param {{ title: string, text: Said, subject: Said, confirm: string }} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, subject, confirm: confirmLabel }) {
  return new Promise((resolve) => {
    const cancel = button('Cancel', () => dialog.close(), { autofocus: true });
    const yes = button(confirmLabel, (event) => {
      // The second half of a double click was meant for what lay below: nobody has read the question.
      if (/** @type {MouseEvent} */ (event).detail <= 1) dialog.close('yes');
    }, { class: 'danger solid' });
    const asked = h('div', { id: 'asked' }, h('p', null, text), h('p', { class: 'subject mono' }, subject));
    const dialog = openDialog(title, asked, h('div', { class: 'dialog-actions' }, cancel, yes));
    // Read out with the title: the focus is on a button, which says nothing of what it is about.
    dialog.setAttribute('aria-describedby', asked.id);
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'));
  });
}

/**
 * A secret that the gateway will not show again. It stays until it is dismissed.
 *
 * @param {{ title: string, text: Said, secret: string }} shown
 */
export function showSecret({ title, text, secret }) {
  const value = h('output', { class: 'secret mono', tabindex: '0' }, secret);
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(secret);
      replace(copy, 'Copied');
    } catch {
      // Without TLS there is no clipboard: the operator copies what is selected.
      getSelection()?.selectAllChildren(value);
    }
  });
  const dialog = openDialog(title, h('p', null, text), value, h('div', { class: 'dialog-actions' }, copy, button('Done', () => dialog.close(), { class: 'solid' })));
  // A stray Escape must not lose what cannot be had again.
  dialog.addEventListener('cancel', (event) => event.preventDefault());
}

/** Hands a file to the browser to keep. @param {string} name @param {Blob} content */
export function saveFile(name, content) {
  const url = URL.createObjectURL(content);
  h('a', { href: url, download: name }).click();
  // The browser has begun to read it when the click is over, but it is nowhere said that it has.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * A form that stays open, with the reason, when what it asks for is refused.
 *
 * @param {{ title: string, fields: readonly Node[], submit: string, onSubmit: () => Promise<unknown> }} options
 */
export function formDialog({ title, fields, submit, onSubmit }) {
  const form = submitForm({ fields, submit, onSubmit: async () => { await onSubmit(); dialog.close(); }, extra: [button('Cancel', () => dialog.close())] });
  const dialog = openDialog(title, form);
}

/**
 * @param {{ fields: readonly Node[], submit: string, onSubmit: () => Promise<unknown>, extra?: readonly Node[] }} options
 */
export function submitForm({ fields, submit, onSubmit, extra = [] }) {
  const error = h('p', { class: 'form-error', role: 'alert' });
  const send = h('button', { type: 'submit', class: 'solid' }, submit);
  const form = h('form', null, fields, error, h('div', { class: 'dialog-actions' }, extra, send));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    replace(error);
    send.disabled = true;
    try {
      await onSubmit();
    } catch (problem) {
      if (form.isConnected) replace(error, messageOf(problem));
      else notify(messageOf(problem), 'error'); // closed meanwhile, which has taken back nothing
    } finally {
      send.disabled = false;
      // A button that is disabled loses the focus.
      if (form.isConnected && document.activeElement === document.body) send.focus();
    }
  });
  return form;
}

/**
 * A table that is filled page by page.
 *
 * @template Row
 * @param {object} options
 * @param {string} options.label
 * @param {readonly string[]} options.columns
 * @param {readonly string[]} [options.numbers] those of the columns that hold numbers
 * @param {number} options.perPage
 * @param {(cursor: string | undefined, perPage: number) => Promise<{ rows: readonly Row[], next: string | null }>} options.load
 * @param {(row: Row) => HTMLTableRowElement} options.render
 * @param {string | (() => string)} options.empty
 */
export function pagedTable({ label, columns, numbers = [], perPage, load, render, empty }) {
  const body = h('tbody');
  const note = h('p', { class: 'empty' });
  const more = button(MORE, loadMore, { class: 'more', hidden: true });
  const warning = h('p', { class: 'form-error' });
  const element = h('div', { class: 'panel scroll' },
    h('table', { 'aria-label': label, class: 'cards' }, h('thead', null, h('tr', null, columns.map((column) => h('th', { scope: 'col', class: numbers.includes(column) ? 'number' : null }, column)))), body), warning, note, more);
  /** @type {string | undefined} */
  let cursor;
  let generation = 0;
  let questions = 0;
  /** Reads what could not be read last; undefined when nothing failed. @type {(() => Promise<void>) | undefined} */
  let failed;
  let attempts = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry;

  async function loadMore() {
    if (more.ariaDisabled === 'true') return; // asked for again, it would begin again
    more.ariaDisabled = 'true';
    setText(more, 'Reading …');
    await attempt(() => fill(cursor, perPage));
    more.ariaDisabled = 'false';
    setText(more, MORE);
  }

  /**
   * @param {string | undefined} from undefined: anew, from the beginning
   * @param {number} wanted how many rows
   * @param {boolean} [isAsked] the operator has asked, maybe for something else than what is shown
   * @returns {Promise<void>}
   */
  async function fill(from, wanted, isAsked = false) {
    generation += 1;
    const mine = generation;
    questions += 1;
    clearTimeout(retry);
    if (body.childElementCount === 0 && note.textContent === '') replace(note, 'Reading …');
    if (isAsked) {
      body.classList.add('earlier');
      more.hidden = true; // more of what was asked for before does not belong to it
    }
    const { rows, next } = await read(from, wanted, () => mine === generation).catch((problem) => {
      if (mine === generation) fails(() => fill(from, wanted, isAsked), problem);
      throw problem;
    }).finally(() => { questions -= 1; });
    if (mine !== generation) return; // a newer question was asked meanwhile
    failed = undefined;
    attempts = 0;
    const elements = rows.map((row) => labelled(render(row), columns));
    if (from === undefined) keepingFocus(body, () => body.replaceChildren(...elements));
    else body.append(...elements);
    if (from === undefined) body.classList.remove('earlier');
    replace(warning);
    cursor = next ?? undefined;
    more.hidden = next === null;
    replace(note, body.childElementCount > 0 ? '' : typeof empty === 'string' ? empty : empty());
  }

  /** As many rows as are wanted, from as many pages as they take. @param {string | undefined} from @param {number} wanted @param {() => boolean} isStillAsked */
  async function read(from, wanted, isStillAsked) {
    let { rows, next } = await load(from, Math.min(wanted, MAX_PER_PAGE));
    while (next !== null && rows.length < wanted && isStillAsked()) {
      const page = await load(next, Math.min(wanted - rows.length, MAX_PER_PAGE));
      rows = [...rows, ...page.rows];
      next = page.next;
    }
    return { rows, next };
  }

  /** @param {() => Promise<void>} again @param {any} problem */
  function fails(again, problem) {
    failed = again;
    const passes = mayPass(problem);
    if (body.classList.contains('earlier') && body.childElementCount > 0) replace(warning, `This could not be read: what stands here is from before.${passes ? ' It is tried again by itself.' : ''}`);
    if (body.childElementCount === 0) replace(note, problem.status === 0 ? 'The gateway could not be reached. This is read when the connection is back, or with Refresh.' : `This could not be read. ${passes ? 'It is tried again by itself.' : 'Try again with Refresh.'}`);
    if (!passes) return;
    const askedMs = typeof problem.body.retry_after_secs === 'number' ? problem.body.retry_after_secs * 1000 : 0;
    retry = setTimeout(() => { if (element.isConnected) void renew(); }, Math.max(askedMs, backoffMs(attempts)));
    attempts += 1;
  }

  /** Reads what could not be read. When that fails again, it waits for the next time. */
  async function renew() {
    if (failed === undefined) return;
    try {
      await failed();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
    }
  }
  return {
    element, body, renew,
    reload: () => fill(undefined, perPage, true),
    /** Begins again with what is newest, by itself. */
    begin: () => fill(undefined, perPage),
    /** Reads again all that is there, however many pages that were: nobody loses his place. */
    refresh: () => fill(undefined, Math.max(perPage, body.childElementCount)),
    isReading: () => questions > 0,
    /** What stands here is not, or not yet, what was asked for last. */
    isEarlier: () => body.classList.contains('earlier'),
  };
}

/** Not what the gateway refuses, which it would refuse again. @param {unknown} problem */
const mayPass = (problem) => problem instanceof Problem && (problem.status === 0 || problem.status === 429 || problem.status >= 500);

/**
 * The keyboard goes on from where it was: with the control of the same name, else with the row that now stands there.
 *
 * @param {HTMLTableSectionElement} body
 * @param {() => void} change
 */
function keepingFocus(body, change) {
  const focused = document.activeElement;
  if (focused === null || !body.contains(focused)) return change();
  const at = [...body.rows].findIndex((row) => row.contains(focused));
  change();
  focusOn(standIn(focused) ?? body.rows[Math.min(at, body.rows.length - 1)]?.querySelector('button, select, a'));
}

/** On a narrow screen each cell stands under the name of its column. @param {HTMLTableRowElement} row @param {readonly string[]} columns */
export function labelled(row, columns) {
  [...row.cells].forEach((cell, index) => { cell.dataset.label = columns[index] ?? ''; });
  return row;
}

/**
 * @param {string} title
 * @param {...(Node | null | false)} actions
 */
export const viewHead = (title, ...actions) => h('div', { class: 'view-head' }, h('h1', null, title), h('div', { class: 'actions' }, actions));
