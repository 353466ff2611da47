/** What an operator does to an operation: shown before it is confirmed, and taken back when it is refused. */
import { Problem } from '../api.js';
import { nowMs } from '../clock.js';
import { confirm } from '../dialogs.js';
import { h, parts } from '../dom.js';
import { agentName, count, plural, SLASH } from '../format.js';
import { messageOf, notify } from '../notices.js';
import { ACTIONS } from '../ops-model.js';
import { callOfThisVisit } from '../session.js';

/** @typedef {import('../ops-model.js').Op} Op */
/** @typedef {import('../ops-model.js').Action} Action */

/** Requests for an answer at once, when many operations are meant. */
const AT_ONCE = 8;
/** Before it is confirmed. */
const MAX_AGENTS_NAMED = 8;
const PAST = { pause: 'paused', resume: 'resumed', terminate: 'terminated' };
/** What the operation was when it was too late for it, by another's hand or by itself. */
const TOO_LATE = { pause: 'no longer running', resume: 'no longer paused', terminate: 'already finished' };

/** When no event has confirmed an answer by then, the answer itself is believed. */
const CONFIRM_WITHIN_MS = 3_000;

/**
 * @param {import('../ops-model.js').OpsModel} model
 * @param {() => void} refresh shows what the model now says
 * @param {() => void} refreshSoon the same, once for however many answers come at a time
 */
export function operationControl(model, refresh, refreshSoon) {
  const call = callOfThisVisit();
  /** @param {Op} op @param {Action} action */
  async function ask(op, action) {
    model.ask(op.key, action);
    refresh();
    const problem = await order(op, action);
    if (problem !== undefined) notify(messageOf(problem), 'error');
  }

  /**
   * What the gateway has refused it for, if it has. @param {Op} op @param {Action} action @returns {Promise<unknown>}
   */
  async function order(op, action) {
    for (;;) {
      try {
        const path = `/api/v1/ops/${encodeURIComponent(op.opId)}/${action}`;
        // Another org may have an operation of this id.
        const record = await call('POST', `${path}?org_id=${encodeURIComponent(op.orgId ?? '')}`);
        setTimeout(() => believe(op, action, record), CONFIRM_WITHIN_MS);
        return undefined;
      } catch (problem) {
        const waitSecs =
          problem instanceof Problem && problem.status === 429 ? problem.body.retry_after_secs : undefined;
        if (typeof waitSecs === 'number') {
          await new Promise((resolve) => {
            setTimeout(resolve, waitSecs * 1000);
          });
          continue;
        }
        model.takeBack(op.key, action);
        refreshSoon();
        return problem;
      }
    }
  }

  /**
   * Tries each, whatever became of the others, and says in the end what became of them.
   *
   * @param {readonly Op[]} ops
   * @param {Action} action
   * @param {() => readonly Op[]} find those that are meant by now
   */
  async function askAll(ops, action, find) {
    for (const { key } of ops) model.ask(key, action);
    refresh();
    /** @type {unknown[]} */
    const problems = [];
    let late = 0;
    const left = ops.values();
    // What has not been asked for when the page is gone never will be. Each call has its own: another that ends first
    // takes away only that.
    const askBeforeLeaving = (/** @type {Event} */ event) => event.preventDefault();
    window.addEventListener('beforeunload', askBeforeLeaving);
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const op of left) {
          const problem = await order(op, action);
          // What has changed meanwhile is as somebody wanted it.
          if (problem instanceof Problem && (problem.status === 404 || problem.status === 409)) late += 1;
          else if (problem !== undefined) problems.push(problem);
        }
      }),
    );
    window.removeEventListener('beforeunload', askBeforeLeaving);
    if (problems.length > 0)
      return notify(
        `${count(problems.length)} of ${plural(ops.length, 'operation')} could not be ${PAST[action]}: ${messageOf(problems[0])}`,
        'error',
      );
    const known = new Set(ops.map(({ key }) => key));
    const fresh = find().filter((op) => !known.has(op.key) && mayBe(op, action)).length;
    notify(
      [
        `${plural(ops.length - late, 'operation')} ${was(ops.length - late)} ${PAST[action]}.`,
        ...(late > 0 ? [`${count(late)} ${was(late)} ${TOO_LATE[action]}.`] : []),
        ...(fresh > 0
          ? [
              `${count(fresh)} more can now be ${PAST[action]}.${action === 'terminate' ? ' To stop an agent from starting more, remove it.' : ''}`,
            ]
          : []),
      ].join(' '),
    );
  }

  /** @param {Op} op @param {Action} action @param {any} record the operation as the gateway has answered it */
  function believe({ key, orgId, agentId, teamId }, action, record) {
    if (model.get(key)?.asked !== action) return;
    model.apply(
      {
        id: '',
        event_type: 'ops_change',
        org_id: orgId,
        agent_id: agentId,
        timestamp: record.updated_at,
        payload: { ...record, team_id: teamId },
      },
      nowMs(),
    );
    refreshSoon();
  }

  return {
    /** @param {string} key @param {Action} action */
    async one(key, action) {
      const op = model.get(key);
      if (op === undefined || !mayBe(op, action)) return;
      if (action === 'terminate' && !(await isTerminationMeant(op))) return;
      const now = model.get(key);
      // While a snapshot is read it is not known: then the gateway says what has become of it.
      if (now !== undefined && !ACTIONS[now.state].includes(action))
        return notify([parts(op.opId, ':'), ` was ${TOO_LATE[action]}.`]);
      await ask(op, action);
    },
    /** Of these, the ones that are in a state for it. @param {() => readonly Op[]} find @param {Action} action */
    async all(find, action) {
      const meant = find().filter((op) => mayBe(op, action));
      if (meant.length === 0) return notify(`None of these operations can be ${PAST[action]}.`);
      if (await areAllMeant(meant, action))
        await askAll(
          meant.filter((op) => mayBe(op, action)),
          action,
          find,
        );
    },
  };
}

/** @param {number} value */
const was = (value) => (value === 1 ? 'was' : 'were');

/** @param {Op} op @param {Action} action */
const mayBe = (op, action) => op.asked === undefined && ACTIONS[op.state].includes(action);

/** @param {Op} op */
const nameOf = ({ orgId, teamId, agentId }) => agentName({ org_id: orgId, team_id: teamId, agent_id: agentId });

/** @param {Op} op */
const isTerminationMeant = (op) =>
  confirm({
    title: 'Terminate this operation?',
    text: [parts(nameOf(op), SLASH), ' is told to stop immediately. This cannot be undone.'],
    subject: parts(op.opId, ':'),
    confirm: 'Terminate',
  });

/** @param {readonly Op[]} ops @param {Action} action */
function areAllMeant(ops, action) {
  const verb = `${action.charAt(0).toUpperCase()}${action.slice(1)}`;
  /** @type {Map<string, number>} */
  const opCounts = new Map();
  for (const name of ops.map(nameOf)) opCounts.set(name, (opCounts.get(name) ?? 0) + 1);
  // Those that are hit the most are named.
  const agents = [...opCounts].sort(([, one], [, other]) => other - one);
  const others = agents.length - MAX_AGENTS_NAMED;
  return confirm({
    title: `${verb} ${plural(ops.length, 'operation')}?`,
    text:
      action === 'terminate'
        ? 'Their agents are told to stop immediately. This cannot be undone.'
        : 'Their agents are told immediately.',
    subject: [
      ...agents.slice(0, MAX_AGENTS_NAMED).map(([name, opCount]) => [parts(name, SLASH), ` · ${count(opCount)}`]),
      ...(others > 0 ? [[`and ${plural(others, 'more agent')}`]] : []),
    ].map((line) => h('span', { class: 'line' }, line)),
    isHarmless: action !== 'terminate',
    confirm: verb,
  });
}
