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
 * @template Row
 * @typedef {object} PagedTableOptions
 * @property {string} label
 * @property {readonly string[]} columns
 * @property {readonly string[]} [numbers] those of the columns that hold numbers
 * @property {number} perPage
 * @property {(cursor: string | undefined, perPage: number, isCurrent: () => boolean) => Promise<{ rows: readonly Row[],
 * next: string | null }>} load
 * @property {(row: Row) => HTMLTableRowElement} render
 * @property {string | (() => string)} empty
 */

/**
 * A table that is filled page by page. What others call is bound, so that it can be handed on.
 *
 * @template Row
 */
export class PagedTable {
  body = h('tbody');
  /** @type {HTMLElement} */
  element;
  #options;
  #note = h('p', { class: 'empty' });
  #warning = h('p', { class: 'form-error' });
  #more = button(MORE, () => this.#loadMore(), { class: 'more', hidden: true });
  /** @type {string | undefined} */
  #cursor;
  /** Of the newest question: answers to older ones are dropped. */
  #generation = 0;
  #questions = 0;
  /** Repeats the question that failed last; undefined when none did. @type {(() => Promise<void>) | undefined} */
  #failed;
  #attempts = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retry;

  /** @param {PagedTableOptions<Row>} options */
  constructor(options) {
    this.#options = options;
    const { label, columns, numbers = [] } = options;
    const head = columns.map((column) =>
      h('th', { scope: 'col', class: numbers.includes(column) ? 'number' : null }, column),
    );
    this.element = h(
      'div',
      { class: 'panel scroll' },
      h('table', { 'aria-label': label, class: 'cards' }, h('thead', null, h('tr', null, head)), this.body),
      this.#warning,
      this.#note,
      this.#more,
    );
  }

  /** Reads what the operator asks for now, from the beginning. */
  reload = () => this.#fill(undefined, this.#options.perPage, true);

  /** Reads the newest rows, without having been asked to. */
  begin = () => this.#fill(undefined, this.#options.perPage);

  /** Reads all rows again, however many pages they were, so that nobody loses their place. */
  refresh = () => this.#fill(undefined, Math.max(this.#options.perPage, this.body.childElementCount));

  /** Repeats the question that failed. When it fails again, it waits for the next time. */
  renew = async () => {
    if (this.#failed === undefined) return;
    try {
      await this.#failed();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
    }
  };

  isReading() {
    return this.#questions > 0;
  }

  /** Whether the rows are not (yet) those that were asked for last. */
  isEarlier() {
    return this.body.classList.contains('earlier');
  }

  async #loadMore() {
    if (this.#more.ariaDisabled === 'true') return; // asked for again, it would begin again
    this.#more.ariaDisabled = 'true';
    setText(this.#more, 'Loading…');
    await attempt(() => this.#readOn());
    this.#more.ariaDisabled = 'false';
    setText(this.#more, MORE);
  }

  /** Some cursors end with a restart of the gateway: then all rows are read again, and a page more. */
  #readOn() {
    const { perPage } = this.#options;
    const shown = this.body.childElementCount;
    return this.#fill(this.#cursor, perPage).catch((problem) => {
      if (!(problem instanceof Problem && problem.body.field === 'cursor')) throw problem;
      return this.#fill(undefined, shown + perPage);
    });
  }

  /**
   * @param {string | undefined} from undefined: anew, from the beginning
   * @param {number} wanted how many rows
   * @param {boolean} [isAsked] the operator has asked, maybe for something else than what is shown
   * @returns {Promise<void>}
   */
  async #fill(from, wanted, isAsked = false) {
    this.#generation += 1;
    const mine = this.#generation;
    const isCurrent = () => mine === this.#generation && this.element.isConnected;
    this.#questions += 1;
    clearTimeout(this.#retry);
    this.#showLoading(isAsked);
    const found = await this.#read(from, wanted, isCurrent)
      .catch((problem) => {
        if (!isCurrent()) return undefined; // nobody waits for it any more
        this.#failed = () => this.#fill(from, wanted, isAsked);
        this.#showFailure(problem, from === undefined);
        if (mayPass(problem)) this.#retryLater(problem);
        throw problem;
      })
      .finally(() => {
        this.#questions -= 1;
      });
    if (found === undefined || mine !== this.#generation) return;
    this.#failed = undefined;
    this.#attempts = 0;
    this.#show(found, from === undefined);
  }

  /**
   * As many rows as are wanted, from as many pages as they take. @param {string | undefined} from @param {number}
   * wanted @param {() => boolean} isCurrent
   */
  async #read(from, wanted, isCurrent) {
    const { load } = this.#options;
    let { rows, next } = await load(from, Math.min(wanted, MAX_PER_PAGE), isCurrent);
    while (next !== null && rows.length < wanted && isCurrent()) {
      const page = await load(next, Math.min(wanted - rows.length, MAX_PER_PAGE), isCurrent);
      rows = [...rows, ...page.rows];
      next = page.next;
    }
    return { rows, next };
  }

  /** @param {boolean} isAsked */
  #showLoading(isAsked) {
    if (this.body.childElementCount === 0 && this.#note.textContent === '') replace(this.#note, 'Loading…');
    if (!isAsked) return;
    this.body.classList.add('earlier');
    this.#more.hidden = true; // more of what was asked for before does not belong to it
  }

  /** @param {{ rows: readonly Row[], next: string | null }} page @param {boolean} isAnew */
  #show({ rows, next }, isAnew) {
    const { render, columns, empty } = this.#options;
    const elements = rows.map((row) => labelled(render(row), columns));
    if (isAnew) {
      keepingFocus(this.body, () => this.body.replaceChildren(...elements));
      this.body.classList.remove('earlier');
    } else this.body.append(...elements);
    replace(this.#warning);
    this.#cursor = next ?? undefined;
    this.#more.hidden = next === null;
    replace(this.#note, this.body.childElementCount > 0 ? '' : typeof empty === 'string' ? empty : empty());
  }

  /** @param {any} problem @param {boolean} isAnew not only more rows */
  #showFailure(problem, isAnew) {
    const outlook = mayPass(problem) ? 'Retrying…' : 'Press Refresh to try again.';
    if (this.body.childElementCount === 0)
      replace(
        this.#note,
        problem.status === 0
          ? 'Cannot reach the gateway. The list loads when the connection is back. Press Refresh to try now.'
          : `Could not load the list. ${outlook}`,
      );
    else if (isAnew) replace(this.#warning, `Could not refresh: these rows may be out of date. ${outlook}`);
  }

  /** @param {any} problem */
  #retryLater(problem) {
    const { retry_after_secs: askedSecs } = problem.body;
    const askedMs = typeof askedSecs === 'number' ? askedSecs * 1000 : 0;
    this.#retry = setTimeout(
      () => {
        if (this.element.isConnected) void this.renew();
      },
      Math.max(askedMs, backoffMs(this.#attempts)),
    );
    this.#attempts += 1;
  }
}

/** Whether it may succeed later: not what the gateway refuses, which it would refuse again. @param {unknown} problem */
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
