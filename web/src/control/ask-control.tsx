/** The questions before operations are paused, resumed or terminated; a lasting stop is offered beside it. */
import { agentName, count, plural } from '../base/format.ts';
import { type Action, agentOf, mayBe, type Op, VERB } from '../live/op.ts';
import { can } from '../session/session.ts';
import { ask } from '../ui/dialog.tsx';
import { Parts } from '../ui/names.tsx';
import { notify } from '../ui/notices.tsx';
import { controlAll, controlOne, PAST } from './control.ts';
import { askHalt, type HaltTarget } from './halt-dialog.tsx';

/** Before it is confirmed. */
const MAX_AGENTS_NAMED = 8;

const TEXT: Readonly<Record<Action, string>> = {
  pause: 'is told to wait until it is resumed.',
  resume: 'is told to go on.',
  terminate: 'is told to stop immediately. This cannot be undone, and the agent may begin another.',
};
const TEXT_OF_MANY: Readonly<Record<Action, string>> = {
  pause: 'Their agents are told to wait until they are resumed.',
  resume: 'Their agents are told to go on.',
  terminate: 'Their agents are told to stop immediately. This cannot be undone, and they may begin others.',
};

/** Describes an operation in words. */
export const doingOf = ({ action, resource }: Pick<Op, 'action' | 'resource'>): string =>
  [action, resource].filter((text) => text !== '').join(' ') || 'an operation without a check';

const haltInstead = (action: Action, target: HaltTarget) =>
  action === 'terminate' && can('admin')
    ? { label: 'Stop and keep stopped…', onChoose: () => askHalt(target) }
    : undefined;

export function askControl(op: Op, action: Action): void {
  const agent = agentOf(op);
  ask({
    title: `${VERB[action]} this operation?`,
    text: (
      <>
        <Parts text={agentName(agent)} /> {TEXT[action]}
      </>
    ),
    subject: <bdi class="mono">{doingOf(op)}</bdi>,
    confirm: VERB[action],
    isHarmless: action !== 'terminate',
    other: haltInstead(action, agent),
    onConfirm: () => controlOne(op, action),
  });
}

/** Asks about those that `find` returns and that are in a state for it. */
export function askControlAll(find: () => readonly Op[], action: Action, target: HaltTarget): void {
  const meant = find().filter((op) => mayBe(op, action));
  if (meant.length === 0) return notify(`None of these operations can be ${PAST[action]}.`);
  ask({
    title: `${VERB[action]} ${plural(meant.length, 'operation')}?`,
    text: TEXT_OF_MANY[action],
    subject: <Hit ops={meant} />,
    confirm: VERB[action],
    isHarmless: action !== 'terminate',
    other: haltInstead(action, target),
    onConfirm: async () => {
      void controlAll(meant, action, find);
    },
  });
}

/** Names those that are hit the most. */
function Hit({ ops }: { readonly ops: readonly Op[] }) {
  const counts = new Map<string, number>();
  for (const name of ops.map((op) => agentName(agentOf(op)))) counts.set(name, (counts.get(name) ?? 0) + 1);
  const agents = [...counts].sort(([, one], [, other]) => other - one);
  const others = agents.length - MAX_AGENTS_NAMED;
  return (
    <ul class="plain-list">
      {agents.slice(0, MAX_AGENTS_NAMED).map(([name, opCount]) => (
        <li key={name}>
          <Parts text={name} /> · {count(opCount)}
        </li>
      ))}
      {others > 0 && <li>and {plural(others, 'more agent')}</li>}
    </ul>
  );
}
