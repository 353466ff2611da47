/** What an operator does to an operation: shown before it is confirmed, and taken back when it is refused. */
import { Problem, query } from '../api.js';
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
/** The state that made it too late. */
const TOO_LATE = { pause: 'no longer running', resume: 'no longer paused', terminate: 'already finished' };

/** Without an event by then, the answer itself is applied. */
const CONFIRM_WITHIN_MS = 3_000;

export class OperationControl {
  /** Only in the name of the user who opened the view. */
  #call = callOfThisVisit();
  #model;
  #refresh;
  #refreshSoon;

  /**
   * @param {import('../ops-model.js').OpsModel} model
   * @param {() => void} refresh shows what the model now says
   * @param {() => void} refreshSoon the same, once for however many answers come at a time
   */
  constructor(model, refresh, refreshSoon) {
    this.#model = model;
    this.#refresh = refresh;
    this.#refreshSoon = refreshSoon;
  }

  /** @param {string} key @param {Action} action */
  async one(key, action) {
    const op = this.#model.get(key);
    if (op === undefined || !mayBe(op, action)) return;
    if (action === 'terminate' && !(await isTerminationMeant(op))) return;
    const now = this.#model.get(key);
    // Unknown while a snapshot is read: then the gateway says what has become of it.
    if (now !== undefined && !ACTIONS[now.state].includes(action))
      return notify([parts(op.opId, ':'), ` was ${TOO_LATE[action]}.`]);
    this.#model.ask(op.key, action);
    this.#refresh();
    const problem = await this.#send(op, action);
    if (problem !== undefined) notify(messageOf(problem), 'error');
  }

  /** Of these, the ones that are in a state for it. @param {() => readonly Op[]} find @param {Action} action */
  async all(find, action) {
    const meant = find().filter((op) => mayBe(op, action));
    if (meant.length === 0) return notify(`None of these operations can be ${PAST[action]}.`);
    if (!(await areAllMeant(meant, action))) return;
    const ops = meant.filter((op) => mayBe(op, action));
    for (const { key } of ops) this.#model.ask(key, action);
    this.#refresh();
    const { problems, late } = await this.#sendAll(ops, action);
    if (problems.length > 0)
      return notify(
        `${count(problems.length)} of ${plural(ops.length, 'operation')} could not be ${PAST[action]}: ${messageOf(problems[0])}`,
        'error',
      );
    const known = new Set(ops.map(({ key }) => key));
    const fresh = find().filter((op) => !known.has(op.key) && mayBe(op, action)).length;
    notify(summaryOf(action, ops.length - late, late, fresh));
  }

  /** Tries each, whatever became of the others. @param {readonly Op[]} ops @param {Action} action */
  async #sendAll(ops, action) {
    /** @type {unknown[]} */
    const problems = [];
    let late = 0;
    const left = ops.values();
    // Requests that were not sent before the page is left never will be. Each run adds its own listener, so that the
    // end of another does not remove it.
    const askBeforeLeaving = (/** @type {Event} */ event) => event.preventDefault();
    window.addEventListener('beforeunload', askBeforeLeaving);
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const op of left) {
          const problem = await this.#send(op, action);
          // Somebody else was faster.
          if (problem instanceof Problem && (problem.status === 404 || problem.status === 409)) late += 1;
          else if (problem !== undefined) problems.push(problem);
        }
      }),
    );
    window.removeEventListener('beforeunload', askBeforeLeaving);
    return { problems, late };
  }

  /** Returns why it was refused, if it was. @param {Op} op @param {Action} action @returns {Promise<unknown>} */
  async #send(op, action) {
    for (;;) {
      try {
        // Another org may have an operation of this id, and so may another gateway of a cluster.
        const which = `?org_id=${encodeURIComponent(op.orgId ?? '')}${query([['op_home', op.home]]).replace('?', '&')}`;
        const path = `/api/v1/ops/${encodeURIComponent(op.opId)}/${action}${which}`;
        const record = await this.#call('POST', path);
        setTimeout(() => this.#applyAnswer(op, action, record), CONFIRM_WITHIN_MS);
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
        this.#model.takeBack(op.key, action);
        this.#refreshSoon();
        return problem;
      }
    }
  }

  /**
   * In place of an event that did not come. @param {Op} op @param {Action} action @param {any} record the operation as
   * the gateway has answered it
   */
  #applyAnswer({ key, orgId, agentId, teamId }, action, record) {
    if (this.#model.get(key)?.asked !== action) return;
    this.#model.apply(
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
    this.#refreshSoon();
  }
}

/** @param {Action} action @param {number} done @param {number} late @param {number} fresh that have come meanwhile */
const summaryOf = (action, done, late, fresh) =>
  [
    `${plural(done, 'operation')} ${was(done)} ${PAST[action]}.`,
    ...(late > 0 ? [`${count(late)} ${was(late)} ${TOO_LATE[action]}.`] : []),
    ...(fresh > 0 ? [`${count(fresh)} more can now be ${PAST[action]}.`] : []),
    ...(fresh > 0 && action === 'terminate' ? ['To stop an agent from starting more, remove it.'] : []),
  ].join(' ');

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
