/** Tells of what happens by itself: a line where somebody looks, a notification of the browser where nobody does. */
import { useEffect, useRef } from 'preact/hooks';
import { agentName, agentPath } from '../base/format.ts';
import type { Frame } from '../live/frame.ts';
import { onEvent } from '../live/live.ts';
import { pendingApprovals } from '../standing/standing.ts';
import { notifyOfEvent } from '../ui/notices.tsx';
import { navigate } from '../ui/router.ts';

function tell({ event_type: kind, org_id, agent_id, payload }: Frame): void {
  const agent = { org_id, team_id: payload.team_id, agent_id };
  const name = agentName(agent);
  if (kind === 'violation') {
    const link = <a href="/alerts">{name}</a>;
    notifyOfEvent(
      <>
        Violation by {link}: {payload.reason}
      </>,
      'error',
      `violation ${name} ${payload.reason}`,
    );
  } else if (kind === 'budget') {
    const whose = payload.tier === 'global' ? 'The global' : 'The';
    const owner =
      payload.tier === 'global' ? (
        ''
      ) : (
        <>
          {' '}
          of <a href={payload.tier === 'agent' ? agentPath(agent) : '/budgets'}>{name}</a>
        </>
      );
    notifyOfEvent(
      <>
        {whose} {payload.period} budget{owner} is {payload.percent}% used
      </>,
      payload.percent >= 100 ? 'error' : 'info',
      `budget ${payload.tier} ${name} ${payload.period} ${payload.percent}`,
    );
  } else if (kind === 'policy' && payload.change === 'reload_failed')
    notifyOfEvent(
      <>
        Policies could not be reloaded: <a href="/policies">see why</a>
      </>,
      'error',
      'policy',
    );
}

/** Whether the browser may show notifications, if it has any. */
const isAllowed = (): boolean => 'Notification' in window && Notification.permission === 'granted';

export function Lookout() {
  useEffect(() => onEvent(tell), []);
  const known = useRef<ReadonlySet<string> | undefined>(undefined);
  const waiting = pendingApprovals.value;
  useEffect(() => {
    const before = known.current;
    known.current = new Set(waiting.map(({ id }) => id));
    const fresh = waiting.filter(({ id }) => before !== undefined && !before.has(id));
    const first = fresh[0];
    if (first === undefined || !document.hidden || !isAllowed()) return;
    const title = fresh.length === 1 ? `${agentName(first.agent)} asks` : `${fresh.length} requests wait`;
    const shown = new Notification(title, { body: `${first.action} ${first.resource}`, tag: 'svc-approvals' });
    shown.onclick = () => {
      window.focus();
      navigate(fresh.length === 1 ? `/approvals/${first.id}` : '/approvals');
    };
  }, [waiting]);
  return null;
}
