/** A list that is read page by page, kept up to date, and read again when it could not be. */
import { Problem } from './api.js';
import { backoffMs } from './backoff.js';
import { button, h, replace, setText } from './dom.js';
import { focusOn, standIn } from './focus.js';
import { attempt } from './notices.js';

/** The gateway gives no more rows at once. */
const MAX_PER_PAGE = 1_000;
const MORE = 'Load more';

/**
 * A table that is filled page by page.
 *
 * @template Row
 * @param {object} options
 * @param {string} options.label
 * @param {readonly string[]} options.columns
 * @param {readonly string[]} [options.numbers] those of the columns that hold numbers
 * @param {number} options.perPage
 * @param {(cursor: string | undefined, perPage: number, isStillAsked: () => boolean) => Promise<{ rows: readonly Row[],
 * next: string | null }>} options.load
 * @param {(row: Row) => HTMLTableRowElement} options.render
 * @param {string | (() => string)} options.empty
 */
export function pagedTable({ label, columns, numbers = [], perPage, load, render, empty }) {
  const body = h('tbody');
  const note = h('p', { class: 'empty' });
  const more = button(MORE, loadMore, { class: 'more', hidden: true });
  const warning = h('p', { class: 'form-error' });
  const element = h(
    'div',
    { class: 'panel scroll' },
    h(
      'table',
      { 'aria-label': label, class: 'cards' },
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          columns.map((column) => h('th', { scope: 'col', class: numbers.includes(column) ? 'number' : null }, column)),
        ),
      ),
      body,
    ),
    warning,
    note,
    more,
  );
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
    setText(more, 'Loading…');
    await attempt(goOn);
    more.ariaDisabled = 'false';
    setText(more, MORE);
  }

  /** A place in some lists ends with a restart of the gateway: then what is here is read again, and a page more. */
  function goOn() {
    const shown = body.childElementCount;
    return fill(cursor, perPage).catch((problem) => {
      if (!(problem instanceof Problem && problem.body.field === 'cursor')) throw problem;
      return fill(undefined, shown + perPage);
    });
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
    const isStillAsked = () => mine === generation && element.isConnected;
    questions += 1;
    clearTimeout(retry);
    if (body.childElementCount === 0 && note.textContent === '') replace(note, 'Loading…');
    if (isAsked) {
      body.classList.add('earlier');
      more.hidden = true; // more of what was asked for before does not belong to it
    }
    const found = await read(from, wanted, isStillAsked)
      .catch((problem) => {
        if (!isStillAsked()) return undefined; // nobody waits for it any more, nor need hear of it
        fails(() => fill(from, wanted, isAsked), problem, from === undefined);
        throw problem;
      })
      .finally(() => {
        questions -= 1;
      });
    if (found === undefined || mine !== generation) return; // a newer question was asked meanwhile
    const { rows, next } = found;
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

  /**
   * As many rows as are wanted, from as many pages as they take. @param {string | undefined} from @param {number}
   * wanted @param {() => boolean} isStillAsked
   */
  async function read(from, wanted, isStillAsked) {
    let { rows, next } = await load(from, Math.min(wanted, MAX_PER_PAGE), isStillAsked);
    while (next !== null && rows.length < wanted && isStillAsked()) {
      const page = await load(next, Math.min(wanted - rows.length, MAX_PER_PAGE), isStillAsked);
      rows = [...rows, ...page.rows];
      next = page.next;
    }
    return { rows, next };
  }

  /** @param {() => Promise<void>} again @param {any} problem @param {boolean} isAnew not only more rows */
  function fails(again, problem, isAnew) {
    failed = again;
    const passes = mayPass(problem);
    if (isAnew && body.childElementCount > 0)
      replace(
        warning,
        `Could not refresh: these rows may be out of date. ${passes ? 'Retrying…' : 'Press Refresh to try again.'}`,
      );
    if (body.childElementCount === 0)
      replace(
        note,
        problem.status === 0
          ? 'Cannot reach the gateway. The list loads when the connection is back. Press Refresh to try now.'
          : `Could not load the list. ${passes ? 'Retrying…' : 'Press Refresh to try again.'}`,
      );
    if (!passes) return;
    const askedMs = typeof problem.body.retry_after_secs === 'number' ? problem.body.retry_after_secs * 1000 : 0;
    retry = setTimeout(
      () => {
        if (element.isConnected) void renew();
      },
      Math.max(askedMs, backoffMs(attempts)),
    );
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
    element,
    body,
    renew,
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
const mayPass = (problem) =>
  problem instanceof Problem && (problem.status === 0 || problem.status === 429 || problem.status >= 500);

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

/**
 * On a narrow screen each cell stands under the name of its column. @param {HTMLTableRowElement} row @param {readonly
 * string[]} columns
 */
export function labelled(row, columns) {
  [...row.cells].forEach((cell, index) => {
    cell.dataset.label = columns[index] ?? '';
  });
  return row;
}
