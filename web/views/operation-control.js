/** What an operator does to an operation: shown before it is confirmed, and taken back when it is refused. */
import { agentName } from '../format.js';
import { ACTIONS } from '../ops-model.js';
import { call } from '../session.js';
import { confirm, messageOf, notify } from '../ui.js';

/** @typedef {import('../ops-model.js').Op} Op */
/** @typedef {import('../ops-model.js').Action} Action */

/** When no event has confirmed an answer by then, the answer itself is believed. */
const CONFIRM_WITHIN_MS = 3_000;

/**
 * @param {import('../ops-model.js').OpsModel} model
 * @param {() => void} refresh shows what the model now says
 */
export function operationControl(model, refresh) {
  /** @param {Op} op @param {Action} action */
  async function ask(op, action) {
    model.ask(op.opId, action);
    refresh();
    try {
      const record = await call('POST', `/api/v1/ops/${encodeURIComponent(op.opId)}/${action}`);
      setTimeout(() => believe(op, action, record), CONFIRM_WITHIN_MS);
    } catch (error) {
      model.takeBack(op.opId, action);
      refresh();
      notify(messageOf(error), 'error');
    }
  }

  /** @param {Op} op @param {Action} action @param {any} record the operation as the gateway has answered it */
  function believe({ opId, orgId, agentId, teamId }, action, record) {
    if (model.get(opId)?.asked !== action) return;
    model.apply({ id: '', event_type: 'ops_change', org_id: orgId, agent_id: agentId, timestamp: record.updated_at, payload: { ...record, team_id: teamId } }, Date.now());
    refresh();
  }

  return async (/** @type {string} */ opId, /** @type {Action} */ action) => {
    const op = model.get(opId);
    if (op === undefined || op.asked !== undefined || !ACTIONS[op.state].includes(action)) return;
    if (action !== 'terminate' || await isTerminationMeant(op)) await ask(op, action);
  };
}

/** @param {Op} op */
const isTerminationMeant = ({ opId, orgId, teamId, agentId }) => confirm({
  title: 'Terminate this operation?',
  text: `${agentName({ org_id: orgId, team_id: teamId, agent_id: agentId })} is told to stop at once. This cannot be undone.`,
  subject: opId,
  confirm: 'Terminate',
});
