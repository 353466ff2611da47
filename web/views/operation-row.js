/** The row of an operation: what it is and what may be done to it, drawn once and kept up to date. */
import { query } from '../api.js';
import { nowMs } from '../clock.js';
import { button, h, parts, setText } from '../dom.js';
import { agentName, duration, SLASH } from '../format.js';
import { ACTIONS, isFinished, shownWord } from '../ops-model.js';
import { can } from '../session.js';
import { operationsLink } from './operations-link.js';

/** @typedef {import('../ops-model.js').Op} Op */
/** @typedef {import('../ops-model.js').Action} Action */
/**
 * @typedef {{ state: HTMLElement, does: HTMLElement, since: HTMLElement, actions: Record<Action, HTMLButtonElement>,
 * row: HTMLTableRowElement, link: HTMLAnchorElement }} Parts
 */

const LABEL = { pause: 'Pause', resume: 'Resume', terminate: 'Terminate' };
const DOING = { pause: 'pausing', resume: 'resuming', terminate: 'terminating' };

/**
 * @param {Op} op
 * @param {(key: string, action: Action) => unknown} act
 * @returns {{ element: HTMLTableRowElement, parts: Parts }}
 */
export function createRow(op, act) {
  const agent = { org_id: op.orgId, team_id: op.teamId, agent_id: op.agentId };
  const name = agentName(agent);
  const state = h('span', { class: 'state' });
  const does = h('td', { class: 'clip' });
  const since = h('td', { class: 'since' });
  /** @param {Action} action */
  const control = (action) =>
    button(LABEL[action], () => act(op.key, action), {
      class: `small${action === 'terminate' ? ' danger' : ''}`,
      'aria-label': `${LABEL[action]} ${op.opId}`,
    });
  const actions = { pause: control('pause'), resume: control('resume'), terminate: control('terminate') };
  // Its parts are boxes of their own, between which a screen reader would put spaces.
  const link = h('a', { href: `#/audit${query([['op_id', op.opId]])}`, 'aria-label': op.opId }, parts(op.opId, ':'));
  const row = h(
    'tr',
    { 'data-op': op.opId },
    h('td', { class: 'mono clip', title: op.opId }, link),
    does,
    h('td', { class: 'clip whose', title: name }, operationsLink(agent, parts(name, SLASH), null)),
    h('td', null, state),
    since,
    can('write') ? h('td', { class: 'row-actions' }, actions.pause, actions.resume, actions.terminate) : null,
  );
  return { element: row, parts: { state, does, since, actions, row, link } };
}

/**
 * @param {Parts} parts @param {Op} op @param {boolean} isHere @param {boolean} isGone the gateway does not keep it any
 * more; neither, while that is read
 */
export function updateRow({ state, does, since, actions, row, link }, op, isHere, isGone) {
  const word = shownWord(op);
  state.className = `state ${word}${op.asked === undefined ? '' : ' asked'}`;
  setText(state, op.asked === undefined ? word : DOING[op.asked]);
  state.title = op.reason;
  const call = [op.action, op.resource].filter((text) => text !== '').join(' ');
  setText(does, call === '' ? '–' : call);
  does.title = call;
  setText(since, duration(nowMs() - op.sinceMs));
  row.classList.toggle('finished', isFinished(op.state) || isGone);
  row.classList.toggle('gone', isGone);
  updateActions(actions, op, !isHere || op.asked !== undefined ? [] : ACTIONS[op.state], link);
}

/**
 * @param {Parts['actions']} actions @param {Op} op @param {readonly Action[]} allowed @param {HTMLAnchorElement} link
 */
function updateActions(actions, op, allowed, link) {
  const focused = Object.values(actions).find((control) => control === document.activeElement);
  for (const action of /** @type {const} */ (['pause', 'resume', 'terminate'])) {
    actions[action].hidden = !ACTIONS[op.state].includes(action);
    // Not `disabled`, which would take the focus from it while the gateway is asked.
    actions[action].ariaDisabled = String(!allowed.includes(action));
  }
  // The keyboard goes on from where it was: with what can be done next, else with the row.
  if (focused?.hidden === true) (Object.values(actions).find(({ hidden }) => !hidden) ?? link).focus();
}
