/** Work that waits for a person: halts in force, alerts that nobody has seen, requests for an approval. */
import { count, dateTime } from '../../base/format.ts';
import { askRelease, haltScopeWords } from '../../control/halt-dialog.tsx';
import { can } from '../../session/session.ts';
import { activeHalts, openAlerts, pendingApprovals } from '../../standing/standing.ts';
import { AgentLink, Ago, Panel, Parts, Tag } from '../../ui/names.tsx';
import { AlertRow } from '../alerts/alert-row.tsx';
import { TimeLeft } from '../approvals/time-left.tsx';

const SHOWN = 5;

export function HaltsPanel() {
  const halts = activeHalts.value;
  if (halts.length === 0) return null;
  return (
    <Panel title="Halts in force" more={<span class="count">{count(halts.length)}</span>}>
      <ul class="rows">
        {halts.map((halt) => (
          <li key={halt.id}>
            <div>
              <strong>
                <Parts text={haltScopeWords(halt.scope)} />
              </strong>{' '}
              {halt.mode === 'pause' && <Tag>paused</Tag>}{' '}
              {!halt.actions.includes('*') && <Tag>{halt.actions.join(', ')}</Tag>}
              <p>
                <bdi>{halt.reason}</bdi>
              </p>
              <p class="hint">
                <Ago at={halt.created_at} /> by <bdi>{halt.created_by}</bdi>
                {halt.expires_at !== null && `, until ${dateTime(halt.expires_at)}`}
              </p>
            </div>
            {can('admin') && (
              <button
                type="button"
                class="small"
                aria-label={`Release ${haltScopeWords(halt.scope)}`}
                onClick={() => askRelease(halt)}
              >
                Release
              </button>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function AlertsPanel() {
  const alerts = openAlerts.value;
  if (alerts.length === 0) return null;
  return (
    <Panel title="Open alerts" more={<a href="/alerts">All {count(alerts.length)}</a>}>
      <ul class="rows">
        {alerts.slice(0, SHOWN).map((alert) => (
          <AlertRow key={alert.id} alert={alert} isSeen={false} />
        ))}
      </ul>
    </Panel>
  );
}

export function ApprovalsPanel() {
  const waiting = pendingApprovals.value;
  if (waiting.length === 0) return null;
  return (
    <Panel title="Pending approvals" more={<a href="/approvals">All {count(waiting.length)}</a>}>
      <ul class="rows">
        {waiting.slice(0, SHOWN).map((approval) => (
          <li key={approval.id}>
            <div>
              <a href={`/approvals/${encodeURIComponent(approval.id)}`}>
                <span class="action">{approval.action}</span> <bdi class="mono">{approval.resource}</bdi>
              </a>
              <p class="hint">
                <AgentLink agent={approval.agent} />
              </p>
            </div>
            <TimeLeft approval={approval} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
