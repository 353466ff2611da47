/** The row of an operation: what it does first, and what may be done to it. */
import { nowMs } from '../../base/clock.ts';
import { agentName, duration, money } from '../../base/format.ts';
import { askControl, doingOf } from '../../control/ask-control.tsx';
import { opQuery } from '../../control/control.ts';
import { askHalt } from '../../control/halt-dialog.tsx';
import { opsVersion, seconds } from '../../live/live.ts';
import { ACTIONS, type Action, agentOf, isFinished, type Op, shownWord, VERB } from '../../live/op.ts';
import { can } from '../../session/session.ts';
import { AgentLink, State } from '../../ui/names.tsx';

export const opPath = (op: Pick<Op, 'opId' | 'orgId' | 'home'>): string =>
  `/operations/${encodeURIComponent(op.opId)}${opQuery(op)}`;

/** Shows an operation's action first, and then its resource. */
const Doing = ({ op }: { readonly op: Pick<Op, 'action' | 'resource'> }) => (
  <>
    <span class="action">{op.action || '–'}</span>
    {op.resource !== '' && (
      <span class="resource">
        <bdi>{op.resource}</bdi>
      </span>
    )}
  </>
);

/** In these states the reason is that of the rule that allowed it. */
const UNREMARKABLE: ReadonlySet<string> = new Set(['running', 'completed']);

type RowProps = {
  readonly op: Op;
  readonly at: number;
  /** The gateway does not keep it any more. */
  readonly isGone: boolean;
  /** It is being read again. */
  readonly isUnknown: boolean;
};

export function OpRow({ op, at, isGone, isUnknown }: RowProps) {
  // It is the same value whatever becomes of it, so that its change is to be asked for.
  opsVersion.value;
  seconds.value;
  const agent = agentOf(op);
  const isOver = isFinished(op.state) || isGone;
  return (
    <tr data-op={op.opId} aria-rowindex={at + 2} class={`${isOver ? 'finished' : ''} ${isGone ? 'gone' : ''}`}>
      <td class="doing">
        <a href={opPath(op)} title={doingOf(op)}>
          <Doing op={op} />
        </a>
      </td>
      <td class="clip" title={agentName(agent)}>
        <AgentLink agent={agent} />
      </td>
      <td class="clip">
        <State word={shownWord(op)} isAsked={op.asked !== undefined} />
        {op.reason !== '' && !UNREMARKABLE.has(shownWord(op)) && (
          <span class="reason" title={op.reason}>
            {op.reason}
          </span>
        )}
      </td>
      <td class="number">{op.spentUsd > 0 ? money(op.spentUsd) : ''}</td>
      <td class="number since" title={`in this state for ${duration(nowMs() - op.sinceMs)}`}>
        {duration(nowMs() - op.registeredAtMs)}
      </td>
      {can('write') && (
        <td class="row-actions">
          <RowActions op={op} state={op.state} isBusy={isGone || isUnknown || op.asked !== undefined} />
        </td>
      )}
    </tr>
  );
}

type ActionsProps = { readonly op: Op; readonly state: Op['state']; readonly isBusy: boolean };

/** Not `disabled`, which would take the focus from a button while the gateway is asked. */
function RowActions({ op, state, isBusy }: ActionsProps) {
  const name = `${doingOf(op)} of ${agentName(agentOf(op))}`;
  const button = (action: Action) => (
    <button
      key={action}
      type="button"
      class={action === 'terminate' ? 'ghost danger' : 'ghost'}
      aria-label={`${VERB[action]} ${name}`}
      aria-disabled={isBusy}
      onClick={() => !isBusy && askControl(op, action)}
    >
      {VERB[action]}
    </button>
  );
  return (
    <>
      {ACTIONS[state].map(button)}
      {can('admin') && (
        <button
          type="button"
          class="ghost danger"
          aria-label={`Halt ${agentName(agentOf(op))}`}
          onClick={() => askHalt(agentOf(op))}
        >
          Halt
        </button>
      )}
    </>
  );
}
