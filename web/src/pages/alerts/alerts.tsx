/** Alerts, which stay until they are opened or marked as seen. */
import { plural } from '../../base/format.ts';
import { markSeen, seen } from '../../standing/seen.ts';
import { alerts, isStandingRead, openAlerts } from '../../standing/standing.ts';
import { Empty, PageHead, Panel } from '../../ui/names.tsx';
import { AlertRow } from './alert-row.tsx';

export function AlertsPage() {
  const fresh = openAlerts.value;
  const old = alerts.value.filter(({ id }) => seen.value.has(id));
  return (
    <div class="page">
      <PageHead
        title="Alerts"
        note="Violations, budgets and limits at 80 and 100 %, halts, failed reloads and trouble with the audit log, of the last 7 days."
      >
        {fresh.length > 1 && (
          <button type="button" onClick={() => markSeen(fresh.map(({ id }) => id))}>
            Mark all as seen
          </button>
        )}
      </PageHead>
      <Panel title="Not seen" more={<span class="count">{plural(fresh.length, 'alert')}</span>}>
        {fresh.length === 0 ? (
          <Empty>{isStandingRead.value ? 'Nothing waits to be seen.' : 'Loading…'}</Empty>
        ) : (
          <ul class="rows">
            {fresh.map((alert) => (
              <AlertRow key={alert.id} alert={alert} isSeen={false} />
            ))}
          </ul>
        )}
      </Panel>
      {old.length > 0 && (
        <Panel title="Seen">
          <ul class="rows">
            {old.map((alert) => (
              <AlertRow key={alert.id} alert={alert} isSeen />
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}
