/** What was spent, what is held back for running operations, and what is left. */
import { keepInAddress, whenSet } from '../address.js';
import { query } from '../api.js';
import { button, field, h, parts, replace, searchInput, select, viewHead } from '../dom.js';
import { agentName, dateTime, money, SLASH } from '../format.js';
import { attempt } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, current } from '../session.js';
import { operationsLink } from './operations-link.js';

const PER_PAGE = 200;
const REFRESH_MS = 5_000;
const NEAR = 0.8;
/** Finding the nearest reads all budgets: so many per request, and less often. */
const PER_SEARCH = 1_000;
const REFRESH_NEAR_MS = 30_000;
/** More than that nobody reads. */
const MAX_NEAR = 200;

/** @param {URLSearchParams} asked what the address wants to see */
export function budgetsView(asked) {
  const boundTo = current()?.orgId ?? null;
  const org = searchInput('All orgs');
  const show = select('Show', [
    ['', 'All budgets'],
    ['near', '80% used or more'],
  ]);
  keepInAddress('#/budgets', asked, { ...(boundTo === null ? { org_id: org } : {}), show });
  const note = h('p', { class: 'hint' });
  /** The org whose budgets are shown: what is being typed does not count until the field is left. */
  let shownOrg = '';
  /** @type {(isCurrent: () => boolean) => ReadPage} */
  const readWhile = (isCurrent) => async (cursor, perPage) => {
    const page = await readBudgets(shownOrg, cursor, perPage);
    if (cursor === undefined && isCurrent()) replace(note, resetsOf(page.rows));
    return page;
  };
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Budgets',
    columns: ['Tier', 'Applies to', 'Today', 'This month'],
    empty: () => {
      if (shownOrg !== '')
        return `${show.value === '' ? 'No budgets match.' : 'No budget of this org is 80% used or more.'} Enter the full name of the org.`;
      return show.value === ''
        ? 'No spending yet. Budgets appear here when agents report costs.'
        : 'No budget is 80% used or more.';
    },
    load: (cursor, perPage, isCurrent) => {
      const read = readWhile(isCurrent);
      return show.value === '' ? read(cursor, perPage) : findNearest(read, isCurrent);
    },
    render: budgetRow,
  });
  const reload = () => {
    shownOrg = boundTo === null ? org.value.trim() : '';
    return attempt(list.reload);
  };
  whenSet([org, show], reload);
  let readAtMs = 0;
  const timer = setInterval(() => {
    // Not while more is on its way, which would be thrown away.
    if (document.hidden || list.isReading() || (show.value !== '' && performance.now() - readAtMs < REFRESH_NEAR_MS))
      return;
    readAtMs = performance.now();
    list.refresh().catch(() => undefined);
  }, REFRESH_MS);
  void reload();
  const element = h(
    'section',
    { class: 'view' },
    viewHead('Budgets', button('Refresh', reload)),
    note,
    h('div', { class: 'filters' }, boundTo === null ? field('Org', org) : null, field('Show', show)),
    list.element,
  );
  return { element, renew: list.renew, dispose: () => clearInterval(timer) };
}

/** @typedef {(cursor: string | undefined, perPage: number) => Promise<{ rows: any[], next: string | null }>} ReadPage */

/** @param {string} org '': of all @param {string | undefined} cursor @param {number} perPage */
async function readBudgets(org, cursor, perPage) {
  const { budgets, next_cursor: next } = await call(
    'GET',
    `/api/v1/budgets${query([
      ['org_id', org],
      ['per_page', perPage],
      ['cursor', cursor],
    ])}`,
  );
  return { rows: budgets, next };
}

/** Budgets that are nearly used up, the nearest to its end first. @param {ReadPage} read @param {() => boolean} isCurrent */
async function findNearest(read, isCurrent) {
  /** @type {any[]} */
  const found = [];
  /** @type {string | undefined} */
  let cursor;
  do {
    const { rows, next } = await read(cursor, PER_SEARCH);
    found.push(...rows.filter((row) => usedOf(row) >= NEAR));
    cursor = next ?? undefined;
  } while (cursor !== undefined && isCurrent());
  return { rows: found.sort((one, other) => usedOf(other) - usedOf(one)).slice(0, MAX_NEAR), next: null };
}

/** @param {readonly any[]} budgets */
const resetsOf = ([first]) =>
  first === undefined
    ? ''
    : `Daily budgets reset ${dateTime(first.daily.reset)}, monthly budgets ${dateTime(first.monthly.reset)}.`;

/** @param {any} row */
const budgetRow = (row) =>
  h(
    'tr',
    null,
    h('td', null, h('span', { class: 'tag' }, row.tier)),
    h(
      'td',
      { class: 'strong' },
      row.tier === 'global' ? 'All orgs' : operationsLink(row, parts(agentName(row), SLASH)),
    ),
    h('td', null, gauge('today', row.daily, row.reserved_usd)),
    h('td', null, gauge('this month', row.monthly, row.reserved_usd)),
  );

/** The share of the cap that is the nearest to its end. @param {any} row @returns {number} */
const usedOf = ({ daily, monthly, reserved_usd: reserved }) =>
  Math.max(
    ...[daily, monthly].map(({ spent_usd: spent, limit_usd: limit }) =>
      limit === null ? 0 : limit === 0 ? 1 : (spent + reserved) / limit,
    ),
  );

/** @param {string} label @param {any} period @param {number} reserved */
function gauge(label, { spent_usd: spent, limit_usd: limit, reset }, reserved) {
  const words = h(
    'span',
    { class: 'gauge-words' },
    h('span', { class: 'strong' }, money(spent)),
    limit === null ? ' · no limit' : ` of ${money(limit)}`,
    reserved > 0 ? ` · ${money(reserved)} reserved` : null,
  );
  if (limit === null) return h('div', { class: 'gauge', title: `resets ${dateTime(reset)}` }, words);
  const used = limit === 0 ? 1 : Math.min(1, spent / limit);
  const kept = limit === 0 ? 0 : Math.min(1 - used, reserved / limit);
  const level = spent > limit || used >= 1 ? 'over' : used + kept >= NEAR ? 'near' : 'fine';
  const bars = [bar('spent', used), bar('reserved', kept)];
  return h(
    'div',
    { class: `gauge ${level}`, title: `resets ${dateTime(reset)}` },
    words,
    h(
      'div',
      {
        class: 'track',
        role: 'meter',
        'aria-label': `Spent ${label}`,
        'aria-valuemin': 0,
        'aria-valuemax': limit,
        'aria-valuenow': Math.min(spent, limit),
        'aria-valuetext': `${money(spent)} of ${money(limit)}`,
      },
      bars,
    ),
  );
}

/** @param {string} kind @param {number} share */
function bar(kind, share) {
  const element = h('span', { class: kind });
  element.style.width = `${share * 100}%`;
  return element;
}
