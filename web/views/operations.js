/** Operations in flight, as they happen, and the means to stop them. */
import { query } from '../api.js';
import { button, field, h, parts, replace, select, setText } from '../dom.js';
import { agentName, count, duration, plural, SLASH } from '../format.js';
import { ACTIONS, isFinished, shownState } from '../ops-model.js';
import { call, can, current } from '../session.js';
import { confirm, messageOf, notify } from '../ui.js';
import { VirtualRows } from '../virtual-rows.js';

/** @typedef {import('../ops-model.js').Op} Op */
/** @typedef {import('../ops-model.js').Action} Action */
/** @typedef {{ state: HTMLElement, since: HTMLElement, actions: Record<Action, HTMLButtonElement>, row: HTMLTableRowElement, link: HTMLAnchorElement }} Parts */

const STATES = /** @type {const} */ (['pending', 'running', 'paused', 'completing', 'terminated']);
const COLUMNS = ['Operation', 'Agent', 'State', 'Since', 'Actions'];
const LABEL = { pause: 'Pause', resume: 'Resume', terminate: 'Terminate' };
const DOING = { pause: 'pausing', resume: 'resuming', terminate: 'terminating' };
const REFRESH_MS = 100;
/** When no event has confirmed an answer by then, the answer itself is believed. */
const CONFIRM_WITHIN_MS = 3_000;
/** The rows keep their places for so long after the pointer has moved over them. */
const HOLD_MS = 4_000;
const NARROW = matchMedia('(max-width: 760px)');

/** @param {{ model: import('../ops-model.js').OpsModel, status: () => import('../live.js').LiveStatus['kind'], onChange: (listener: () => void) => () => void }} operations */
export function operationsView({ model, status, onChange }) {
  const boundTo = current()?.orgId ?? null;
  const text = h('input', { type: 'search', placeholder: 'Operation or agent', autocomplete: 'off', spellcheck: 'false' });
  const org = h('input', { type: 'search', list: 'orgs', placeholder: 'All orgs', autocomplete: 'off', spellcheck: 'false' });
  const orgs = h('datalist', { id: 'orgs' });
  const state = select('State', [['', 'All states'], ...STATES.map((word) => /** @type {const} */ ([word, word]))]);
  const summary = h('p', { class: 'summary' });
  const held = button('', () => refresh(true), { class: 'held', hidden: true });
  const empty = h('p', { class: 'empty' });
  const body = h('tbody');
  const table = h('table', { class: 'ops cards', 'aria-label': 'Operations in flight' }, h('thead', null, h('tr', null, COLUMNS.map((column) => h('th', { scope: 'col' }, column)))), body);
  const scroller = h('div', { class: 'panel ops-scroll', tabindex: '0', role: 'region', 'aria-label': 'Operations in flight' }, table, empty);
  const rows = new VirtualRows(scroller, body, { rowHeightPx: () => (NARROW.matches ? 116 : 44), keyOf: ({ opId }) => opId, create: createRow, update: updateRow });

  /** @type {readonly Op[]} */
  let shown = [];
  let isDue = false;
  /** The orgs that are offered to choose from. @type {readonly string[]} */
  let offered = [];

  let pointedAtMs = -Infinity;
  let pointedAt = '';
  body.addEventListener('pointermove', ({ clientX, clientY }) => {
    // Rows that move under a resting pointer make such events too.
    if (pointedAt === `${clientX} ${clientY}`) return;
    pointedAt = `${clientX} ${clientY}`;
    pointedAtMs = performance.now();
  });

  /** Nothing moves under a hand that is about to act: one must not hit Terminate on the wrong row. */
  const isHeld = () => performance.now() - pointedAtMs < HOLD_MS || body.querySelector(':focus-visible') !== null || scroller.scrollTop > 0;

  /** @param {boolean} [isWanted] the operator has asked for the newest */
  function refresh(isWanted = false) {
    const found = model.list({ orgId: boundTo === null ? org.value.trim() : '', state: state.value, words: text.value.toLowerCase().split(/\s+/).filter((word) => word !== '') });
    if (isWanted) scroller.scrollTop = 0;
    const inPlace = isWanted || !isHeld() ? found : keepPlaces(shown, found, model);
    const waiting = inPlace === found ? 0 : found.length - inPlace.filter((op) => model.get(op.opId) === op).length;
    held.hidden = waiting <= 0;
    setText(held, `${plural(waiting, 'new operation')} – show`);
    shown = inPlace;
    table.ariaRowCount = String(shown.length + 1);
    rows.show(shown);
    const counts = model.counts();
    // Read out when the operator has asked; what merely happens would never be silent.
    summary.ariaLive = isWanted ? 'polite' : 'off';
    const isLive = status() === 'live';
    const isReading = isLive ? model.isFilling(Date.now()) : status() === 'connecting' && model.size === 0;
    const isKnown = isLive ? !isReading : model.size > 0;
    setText(summary, !isKnown ? (model.size === 0 ? '' : `Reading … ${plural(model.size, 'operation')} so far`) : [
      found.length === model.size ? plural(model.size, 'operation') : `${count(found.length)} of ${plural(model.size, 'operation')}`,
      ...STATES.filter((word) => counts[word] > 0).map((word) => `${count(counts[word])} ${word}`),
      ...(isLive ? [] : ['as it was when the connection was lost']),
      ...(model.dropped > 0 ? [`${count(model.dropped)} older ones not shown`] : []),
    ].join(' · '));
    scroller.classList.toggle('stale', !isLive);
    setText(empty, shown.length > 0 ? '' : isReading ? 'Reading what is in flight …' : !isKnown ? 'Not connected: what is in flight is not known.' : model.size > 0 ? 'No operation fits the filter.' : 'No operations in flight. They appear here as soon as an agent asks.');
    const known = model.orgs();
    if (known.length !== offered.length || known.some((name, at) => name !== offered[at])) replace(orgs, known.map((name) => h('option', { value: name })));
    offered = known;
  }

  function soon() {
    if (isDue) return;
    isDue = true;
    setTimeout(() => requestAnimationFrame(() => { isDue = false; refresh(); }), REFRESH_MS);
  }

  /** @param {string} opId @param {Action} action */
  async function act(opId, action) {
    const op = model.get(opId);
    if (op === undefined || op.asked !== undefined || !ACTIONS[op.state].includes(action)) return;
    if (action === 'terminate') {
      const isMeant = await confirm({ title: 'Terminate this operation?', text: `${agentName({ org_id: op.orgId, team_id: op.teamId, agent_id: op.agentId })} is told to stop at once. This cannot be undone.`, subject: opId, confirm: 'Terminate' });
      if (!isMeant) return;
    }
    model.ask(opId, action);
    refresh();
    try {
      const record = await call('POST', `/api/v1/ops/${encodeURIComponent(opId)}/${action}`);
      setTimeout(() => {
        if (model.get(opId)?.asked !== action) return;
        model.apply({ id: '', event_type: 'ops_change', org_id: op.orgId, agent_id: op.agentId, timestamp: record.updated_at, payload: { ...record, team_id: op.teamId } }, Date.now());
        refresh();
      }, CONFIRM_WITHIN_MS);
    } catch (error) {
      model.takeBack(opId, action);
      refresh();
      notify(messageOf(error), 'error');
    }
  }

  /** @param {Op} op */
  function createRow(op) {
    const name = agentName({ org_id: op.orgId, team_id: op.teamId, agent_id: op.agentId });
    const stateWord = h('span', { class: 'state' });
    const since = h('td', { class: 'since', 'data-label': 'Since' });
    /** @param {Action} action */
    const control = (action) => button(LABEL[action], () => act(op.opId, action), { class: `small${action === 'terminate' ? ' danger' : ''}`, 'aria-label': `${LABEL[action]} ${op.opId}` });
    const actions = { pause: control('pause'), resume: control('resume'), terminate: control('terminate') };
    const link = h('a', { href: `#/audit${query([['op_id', op.opId]])}` }, parts(op.opId, ':'));
    const row = h('tr', { 'data-op': op.opId },
      h('td', { class: 'mono clip', title: op.opId, 'data-label': 'Operation' }, link),
      h('td', { class: 'clip', 'data-label': 'Agent', title: name }, parts(name, SLASH)),
      h('td', { 'data-label': 'State' }, stateWord),
      since,
      h('td', { class: 'row-actions', 'data-label': 'Actions' }, can('write') ? [actions.pause, actions.resume, actions.terminate] : null));
    return { element: row, parts: { state: stateWord, since, actions, row, link } };
  }

  /** @param {Parts} parts @param {Op} op */
  function updateRow({ state: stateWord, since, actions, row, link }, op) {
    const isGone = model.get(op.opId) !== op;
    const word = shownState(op);
    stateWord.className = `state ${word}${op.asked === undefined ? '' : ' asked'}`;
    setText(stateWord, op.asked === undefined ? word : DOING[op.asked]);
    setText(since, duration(Date.now() - op.sinceMs));
    row.classList.toggle('finished', isFinished(op.state) || isGone);
    row.classList.toggle('gone', isGone);
    const focused = Object.values(actions).find((control) => control === document.activeElement);
    const allowed = isGone || op.asked !== undefined ? [] : ACTIONS[op.state];
    for (const action of /** @type {const} */ (['pause', 'resume', 'terminate'])) {
      actions[action].hidden = !ACTIONS[op.state].includes(action);
      // Not `disabled`, which would take the focus from it while the gateway is asked.
      actions[action].ariaDisabled = String(!allowed.includes(action));
    }
    // The keyboard goes on from where it was: with what can be done next, else with the row.
    if (focused?.hidden === true) (Object.values(actions).find(({ hidden }) => !hidden) ?? link).focus();
  }

  for (const control of [text, org, state]) control.addEventListener('input', () => refresh(true));
  const forget = onChange(soon);
  const clock = setInterval(() => {
    model.expire(Date.now());
    refresh();
  }, 1_000);
  const element = h('section', { class: 'view fills' },
    h('div', { class: 'view-head' }, h('h1', null, 'Operations'), summary, held),
    h('div', { class: 'filters' },
      field('Search', text),
      boundTo === null ? field('Org', org) : h('div', { class: 'field' }, h('span', { class: 'label' }, 'Org'), h('span', { class: 'fixed' }, boundTo)),
      field('State', state)),
    orgs, scroller);
  queueMicrotask(() => refresh(true));
  return { element, dispose: () => { clearInterval(clock); forget(); } };
}

/** What is shown stays where it is; what has come since waits. @param {readonly Op[]} shown @param {readonly Op[]} found @param {import('../ops-model.js').OpsModel} model */
function keepPlaces(shown, found, model) {
  if (shown.length === 0) return found;
  // After a new snapshot the same operations are new values.
  return shown.map((op) => model.get(op.opId) ?? op);
}
