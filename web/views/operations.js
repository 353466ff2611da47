/** Operations in flight, as they happen, and the means to stop them. */
import { keepInAddress } from '../address.js';
import { nowMs } from '../clock.js';
import { button, field, h, replace, select, setText } from '../dom.js';
import { count, plural } from '../format.js';
import { holdOf } from '../hold.js';
import { countsOf, WORDS, wordsOf } from '../ops-model.js';
import { can, current } from '../session.js';
import { VirtualRows } from '../virtual-rows.js';
import { busiestAgents } from './busiest-agents.js';
import { OperationControl } from './operation-control.js';
import { createRow, updateRow } from './operation-row.js';

/** @typedef {import('../ops-model.js').Op} Op */
/** @typedef {import('../ops-model.js').OpsModel} OpsModel */

/** Their cells are in `operation-row.js` in the same order, their widths in `style.css` by their number. */
const COLUMNS = ['Operation', 'Action', 'Agent', 'State', 'Time in state', 'Actions'];
const REFRESH_MS = 100;
/** However many come, the rows take new places no oftener: faster than that nobody can read. */
const MOVE_EVERY_MS = 1_000;
/** Counting whose all of them are takes longer than drawing those in view. */
const COUNT_EVERY_MS = 1_000;
const NARROW = matchMedia('(max-width: 760px)');
const MEDIUM = matchMedia('(max-width: 999px)');

/**
 * @param {{ model: OpsModel, status: () => import('../live.js').LiveStatus, onChange: (listener: () => void) => () =>
 * void }} operations
 * @param {URLSearchParams} asked what the address wants to see
 */
export function operationsView({ model, status, onChange }, asked) {
  const filters = filterBar(asked, () => refresh(true));
  const busiest = busiestAgents(filters.searchFor);
  filters.element.append(busiest.element);
  const summary = h('p', { class: 'summary' });
  const held = button('', () => refresh(true), { class: 'held', hidden: true });
  const refreshSoon = atMostEvery(REFRESH_MS, () => refresh());
  const control = new OperationControl(model, () => refresh(), refreshSoon);
  const list = operationTable(model, (key, action) => control.one(key, action));
  // Of what the filter leaves, and only where there is one: a stray click must not reach everybody.
  const forAll = h(
    'div',
    { class: 'for-all', role: 'group', 'aria-label': 'All operations that match the filter', hidden: true },
    button('Pause all', () => forEach('pause'), { class: 'small' }),
    button('Resume all', () => forEach('resume'), { class: 'small' }),
    button('Terminate all', () => forEach('terminate'), { class: 'small danger' }),
  );
  /** @param {import('../ops-model.js').Action} action */
  function forEach(action) {
    const filter = filters.read();
    return control.all(() => model.list(filter), action);
  }
  /** @type {readonly Op[]} */
  let shown = [];
  let movedAtMs = -Infinity;
  let countedAtMs = -Infinity;

  /** @param {boolean} [isWanted] the operator has asked for the newest */
  function refresh(isWanted = false) {
    const filter = filters.read();
    const found = model.list(filter);
    forAll.hidden = !can('write') || (filter.orgId === '' && filter.state === '' && filter.words.length === 0);
    if (isWanted) list.toTop();
    const isHeld = !isWanted && list.isHeld();
    const atMs = performance.now();
    const knowledge = knowledgeOf(model, status());
    const inPlace = isHeld || (!isWanted && atMs - movedAtMs < MOVE_EVERY_MS) ? keepPlaces(shown, found, model) : found;
    // What was in flight before does not wait for the first of it, which comes a moment earlier.
    if (inPlace === found && found[0] !== shown[0]) movedAtMs = knowledge.isReading ? -Infinity : atMs;
    const waiting =
      isHeld && inPlace !== found ? found.length - inPlace.filter((op) => model.get(op.key) === op).length : 0;
    held.hidden = waiting <= 0;
    setText(held, `Show ${plural(waiting, 'new operation')}`);
    shown = inPlace;
    list.show(shown, knowledge, filter);
    if (isWanted || atMs - countedAtMs >= COUNT_EVERY_MS) {
      // What comes first does not wait, either.
      countedAtMs = found.length > 0 && !knowledge.isReading ? atMs : -Infinity;
      busiest.show(found, isWanted);
    }
    // Read out when the operator has asked; what merely happens would never be silent.
    summary.ariaLive = isWanted ? 'polite' : 'off';
    setText(summary, summaryText(model, found, knowledge));
    filters.suggest(model.orgs());
  }

  const forget = onChange(refreshSoon);
  /** @param {boolean} [isWanted] */
  const tidy = (isWanted) => {
    model.expire(nowMs());
    refresh(isWanted);
  };
  const clock = setInterval(() => tidy(), 1_000);
  const element = h(
    'section',
    { class: 'view fills' },
    h('div', { class: 'view-head' }, h('h1', null, 'Operations'), summary, held, forAll),
    filters.element,
    list.element,
  );
  // What has expired while another view was open was never here.
  queueMicrotask(() => tidy(true));
  return {
    element,
    dispose: () => {
      clearInterval(clock);
      forget();
    },
  };
}

/** The controls that say what is looked for. @param {URLSearchParams} asked @param {() => void} onInput */
function filterBar(asked, onInput) {
  const boundTo = current()?.orgId ?? null;
  const text = h('input', {
    type: 'search',
    placeholder: 'ID, agent, action …',
    title: 'Looks in ids, agents, actions and resources',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const org = h('input', {
    type: 'search',
    list: 'orgs',
    placeholder: 'All orgs',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const orgs = h('datalist', { id: 'orgs' });
  const state = select('State', [
    ['', 'All states'],
    ['active', 'in flight'],
    ...WORDS.map((word) => /** @type {const} */ ([word, word])),
  ]);
  keepInAddress('#/operations', asked, { q: text, ...(boundTo === null ? { org_id: org } : {}), state });
  for (const control of [text, org, state]) control.addEventListener('input', onInput);
  /** @type {readonly string[]} */
  let offered = [];
  return {
    element: h(
      'div',
      { class: 'filters' },
      field('Search', text),
      boundTo === null
        ? field('Org', org)
        : h('div', { class: 'field' }, h('span', { class: 'label' }, 'Org'), h('span', { class: 'fixed' }, boundTo)),
      field('State', state),
      orgs,
    ),
    /** @param {string} words */
    searchFor(words) {
      text.value = words;
      text.dispatchEvent(new Event('input'));
    },
    /** @returns {import('../ops-model.js').Filter} */
    read: () => ({ orgId: boundTo === null ? org.value.trim() : '', state: state.value, words: wordsOf(text.value) }),
    /** Offers these orgs to choose from. @param {readonly string[]} known */
    suggest(known) {
      if (known.length !== offered.length || known.some((name, at) => name !== offered[at]))
        replace(
          orgs,
          known.map((name) => h('option', { value: name })),
        );
      offered = known;
    },
  };
}

/**
 * The table of what is shown, of which only those rows are drawn that can be seen.
 *
 * @param {OpsModel} model
 * @param {(key: string, action: import('../ops-model.js').Action) => unknown} act
 */
function operationTable(model, act) {
  const empty = h('p', { class: 'empty' });
  const body = h('tbody');
  const table = h(
    'table',
    { class: 'ops', 'aria-label': 'Operations' },
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        COLUMNS.filter((column) => column !== 'Actions' || can('write')).map((column) =>
          h('th', { scope: 'col' }, column),
        ),
      ),
    ),
    body,
  );
  const scroller = h(
    'div',
    { class: 'panel ops-scroll', tabindex: '0', role: 'region', 'aria-label': 'Operations' },
    table,
    empty,
  );
  let isReading = false;
  const rows = new VirtualRows(scroller, body, {
    // As in `style.css`.
    rowHeightPx: () => (NARROW.matches ? 142 : MEDIUM.matches ? 92 : 44),
    keyOf: (/** @type {Op} */ { key }) => key,
    create: (op) => createRow(op, act),
    update(parts, op) {
      const isHere = model.get(op.key) === op;
      updateRow(parts, op, isHere, !isHere && !isReading);
    },
  });
  return {
    element: scroller,
    isHeld: holdOf(() => scroller, body),
    toTop() {
      scroller.scrollTop = 0;
    },
    /** @param {readonly Op[]} shown @param {Knowledge} knowledge @param {import('../ops-model.js').Filter} filter */
    show(shown, knowledge, filter) {
      isReading = knowledge.isReading;
      table.ariaRowCount = String(shown.length + 1);
      rows.show(shown);
      scroller.classList.toggle('stale', !knowledge.isLive);
      setText(empty, shown.length > 0 ? '' : emptyText(model, knowledge, filter));
    },
  };
}

/**
 * What is shown stays where it is; what has come since waits. @param {readonly Op[]} shown @param {readonly Op[]} found
 * @param {OpsModel} model
 */
function keepPlaces(shown, found, model) {
  if (shown.length === 0) return found;
  // After a new snapshot the same operations are new values.
  return shown.map((op) => model.get(op.key) ?? op);
}

/**
 * @typedef {{ isLive: boolean, isReading: boolean, isKnown: boolean }} Knowledge whether what is here is how it is now,
 * still on its way, or known at all
 */

/** @param {OpsModel} model @param {import('../live.js').LiveStatus} status @returns {Knowledge} */
function knowledgeOf(model, status) {
  const isLive = status === 'live';
  const isReading = isLive ? model.isFilling(nowMs()) : status === 'connecting' && model.size === 0;
  return { isLive, isReading, isKnown: isLive ? !isReading : model.size > 0 };
}

/** @param {OpsModel} model @param {readonly Op[]} found those that pass the filter @param {Knowledge} knowledge */
function summaryText(model, found, { isLive, isKnown }) {
  if (!isKnown) return model.size === 0 ? '' : `Loading… ${plural(model.size, 'operation')} so far`;
  const { counts, asked } = countsOf(found);
  return [
    found.length === model.size
      ? plural(model.size, 'operation')
      : `${count(found.length)} of ${plural(model.size, 'operation')}`,
    ...WORDS.filter((word) => counts[word] > 0).map((word) => `${count(counts[word])} ${word}`),
    ...(asked > 0 ? [`${count(asked)} not yet confirmed`] : []),
    ...(isLive ? [] : ['as of when the connection was lost']),
    ...(model.dropped > 0 ? [`${count(model.dropped)} older ones not shown`] : []),
  ].join(' · ');
}

/**
 * Why there is no row. @param {OpsModel} model @param {Knowledge} knowledge @param {import('../ops-model.js').Filter}
 * filter
 */
function emptyText(model, { isReading, isKnown }, { words }) {
  if (isReading) return 'Loading operations…';
  if (!isKnown) return 'Not connected. Operations appear here when the connection is back.';
  if (model.size === 0) return 'No operations. They appear here as soon as an agent asks to act.';
  return `No operations match the filter.${words.some((word) => word.includes('/')) ? ' With a slash, enter full names from the left: org / team / agent.' : ''}`;
}

/** However often it is asked for meanwhile, it happens once. @param {number} waitMs @param {() => void} happen */
function atMostEvery(waitMs, happen) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setTimeout(
      () =>
        requestAnimationFrame(() => {
          isDue = false;
          happen();
        }),
      waitMs,
    );
  };
}
