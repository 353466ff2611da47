/** An operator's actions on operations: shown before they are confirmed, and taken back when they are refused. */
import { nowMs } from '../base/clock.ts';
import { count, plural } from '../base/format.ts';
import { messageOf, Problem, queryOf } from '../base/request.ts';
import { model, opsChanged } from '../live/live.ts';
import { ACTIONS, type Action, mayBe, type Op } from '../live/op.ts';
import { callOfThisVisit } from '../session/session.ts';
import { notify } from '../ui/notices.tsx';

/** Requests for an answer at once, when many operations are meant. */
const AT_ONCE = 8;
export const PAST: Readonly<Record<Action, string>> = { pause: 'paused', resume: 'resumed', terminate: 'terminated' };
/** The state that made it too late. */
const TOO_LATE: Readonly<Record<Action, string>> = {
  pause: 'no longer running',
  resume: 'no longer paused',
  terminate: 'already finished',
};

/** Without an event by then, the answer itself is applied. */
const CONFIRM_WITHIN_MS = 3_000;

type Call = ReturnType<typeof callOfThisVisit>;

/** Rejects with why it was refused. */
export async function controlOne(op: Op, action: Action): Promise<void> {
  const now = model.get(op.key);
  // Unknown while a snapshot is read: then the gateway says what has become of it.
  if (now !== undefined && !ACTIONS[now.state].includes(action))
    return notify(`This operation was ${TOO_LATE[action]}.`);
  model.ask(op.key, action);
  opsChanged();
  const problem = await send(callOfThisVisit(), op, action);
  if (problem !== undefined) throw problem;
}

/** Tries each that may still be asked, whatever became of the others, and says what became of them. */
export async function controlAll(meant: readonly Op[], action: Action, find: () => readonly Op[]): Promise<void> {
  const call = callOfThisVisit();
  const ops = meant.filter((op) => mayBe(op, action));
  for (const { key } of ops) model.ask(key, action);
  opsChanged();
  const { problems, late } = await sendAll(call, ops, action);
  if (problems.length > 0)
    return notify(
      `${count(problems.length)} of ${plural(ops.length, 'operation')} could not be ${PAST[action]}: ${messageOf(problems[0])}`,
      'error',
    );
  const known = new Set(ops.map(({ key }) => key));
  const fresh = find().filter((op) => !known.has(op.key) && mayBe(op, action)).length;
  notify(summaryOf(action, ops.length - late, late, fresh));
}

async function sendAll(call: Call, ops: readonly Op[], action: Action): Promise<{ problems: unknown[]; late: number }> {
  const problems: unknown[] = [];
  let late = 0;
  const left = ops.values();
  // Requests that were not sent before the page is left never will be. Each run adds its own listener, so that the end
  // of another does not remove it.
  const askBeforeLeaving = (event: Event): void => event.preventDefault();
  window.addEventListener('beforeunload', askBeforeLeaving);
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const op of left) {
        const problem = await send(call, op, action);
        // Somebody else was faster.
        if (problem instanceof Problem && (problem.status === 404 || problem.code === 'invalid_transition')) late += 1;
        else if (problem !== undefined) problems.push(problem);
      }
    }),
  );
  window.removeEventListener('beforeunload', askBeforeLeaving);
  return { problems, late };
}

/** Another org may have an operation of this id, and so may another gateway of a cluster. */
export const opQuery = ({ orgId, home }: Pick<Op, 'orgId' | 'home'>): string =>
  `?org_id=${encodeURIComponent(orgId ?? '')}${queryOf({ op_home: home }).replace('?', '&')}`;

/** Returns why it was refused, if it was. */
async function send(call: Call, op: Op, action: Action): Promise<unknown> {
  for (;;) {
    try {
      const record = await call('POST', `/api/v1/ops/${encodeURIComponent(op.opId)}/${action}${opQuery(op)}`);
      setTimeout(() => applyAnswer(op, action, record), CONFIRM_WITHIN_MS);
      return undefined;
    } catch (problem) {
      const waitSecs = problem instanceof Problem && problem.status === 429 ? problem.body.retry_after_secs : undefined;
      if (typeof waitSecs === 'number') {
        await new Promise((resolve) => {
          setTimeout(resolve, waitSecs * 1000);
        });
        continue;
      }
      model.takeBack(op.key, action);
      opsChanged();
      return problem;
    }
  }
}

/** In place of an event that did not come: the operation as the gateway has answered it. */
function applyAnswer({ key, orgId, agentId, teamId }: Op, action: Action, record: any): void {
  if (model.get(key)?.asked !== action) return;
  const frame = { id: '', event_type: 'ops_change', org_id: orgId, agent_id: agentId, timestamp: record.updated_at };
  model.apply({ ...frame, payload: { ...record, team_id: teamId } }, nowMs());
  opsChanged();
}

const was = (value: number): string => (value === 1 ? 'was' : 'were');

/** `fresh` have come meanwhile. */
const summaryOf = (action: Action, done: number, late: number, fresh: number): string =>
  [
    `${plural(done, 'operation')} ${was(done)} ${PAST[action]}.`,
    ...(late > 0 ? [`${count(late)} ${was(late)} ${TOO_LATE[action]}.`] : []),
    ...(fresh > 0 ? [`${count(fresh)} more can now be ${PAST[action]}.`] : []),
    ...(fresh > 0 && action === 'terminate' ? ['A halt keeps an agent from starting more.'] : []),
  ].join(' ');
