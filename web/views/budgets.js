/** What was spent, what is held back for running operations, and what is left. */
import { keepInAddress, whenSet } from '../address.js';
import { query } from '../api.js';
import { button, field, h, parts, replace, select, viewHead } from '../dom.js';
import { agentName, dateTime, money, SLASH } from '../format.js';
import { attempt } from '../notices.js';
import { pagedTable } from '../paged-table.js';
import { call, current } from '../session.js';
import { operationsLink } from './operations-link.js';

const PER_PAGE = 200;
const REFRESH_MS = 5_000;
const NEAR = 0.8;
/** All are read to find those that are near their end: so many at once, and the list no oftener. */
const PER_SEARCH = 1_000;
const REFRESH_NEAR_MS = 30_000;
/** More than that nobody reads. */
const MAX_NEAR = 200;

/** @param {URLSearchParams} asked what the address wants to see */
export function budgetsView(asked) {
  const boundTo = current()?.orgId ?? null;
  const org = h('input', { type: 'search', placeholder: 'All orgs', autocomplete: 'off', spellcheck: 'false' });
  const show = select('Show', [
    ['', 'All budgets'],
    ['near', '80% used or more'],
  ]);
  keepInAddress('#/budgets', asked, { ...(boundTo === null ? { org_id: org } : {}), show });
  const note = h('p', { class: 'hint' });
  /** Whose are shown: what is being typed does not count until it is. */
  let shownOrg = '';
  /** @param {string | undefined} cursor @param {number} perPage */
  async function page(cursor, perPage) {
    const { budgets, next_cursor: next } = await call(
      'GET',
      `/api/v1/budgets${query([
        ['org_id', shownOrg],
        ['per_page', perPage],
        ['cursor', cursor],
      ])}`,
    );
    const first = budgets[0];
    if (cursor === undefined)
      replace(
        note,
        first === undefined
          ? ''
          : `Daily budgets reset ${dateTime(first.daily.reset)}, monthly budgets ${dateTime(first.monthly.reset)}.`,
      );
    return { rows: budgets, next };
  }
  /** Of all budgets those that are near their end, the nearest first. @param {() => boolean} isStillAsked */
  async function nearest(isStillAsked) {
    /** @type {any[]} */
    const found = [];
    /** @type {string | undefined} */
    let cursor;
    do {
      const { rows, next } = await page(cursor, PER_SEARCH);
      found.push(...rows.filter((/** @type {any} */ row) => usedOf(row) >= NEAR));
      cursor = next ?? undefined;
    } while (cursor !== undefined && isStillAsked());
    return { rows: found.sort((one, other) => usedOf(other) - usedOf(one)).slice(0, MAX_NEAR), next: null };
  }
  const list = pagedTable({
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
    load: (cursor, perPage, isStillAsked) => (show.value === '' ? page(cursor, perPage) : nearest(isStillAsked)),
    render: (row) =>
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
      ),
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
