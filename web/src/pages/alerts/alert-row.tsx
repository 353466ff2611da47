/** An alert: the event, the parties, and the way to its evidence. */
import { plural } from '../../base/format.ts';
import type { Alert } from '../../standing/alert.ts';
import { markSeen } from '../../standing/seen.ts';
import { AgentLink, Ago } from '../../ui/names.tsx';

const KIND: Readonly<Record<Alert['kind'], string>> = {
  violation: 'Violation',
  halt: 'Halt',
  budget: 'Budget',
  limit: 'Limit',
  policy: 'Policies',
  audit: 'Audit',
  webhook: 'Webhook',
};

export function AlertRow({ alert, isSeen }: { readonly alert: Alert; readonly isSeen: boolean }) {
  const { id, severity, title, detail, at, times, agent, victim, href, evidence } = alert;
  return (
    <li class={`alert ${isSeen ? 'is-seen' : `is-${severity}`}`}>
      <div>
        <p>
          <span class={`state ${severity}`}>{KIND[alert.kind]}</span>{' '}
          <strong>
            <a href={href} onClick={() => markSeen([id])}>
              {title}
            </a>
          </strong>
          {times > 1 && <span class="tag">{plural(times, 'time')}</span>}
        </p>
        {(agent !== undefined || victim !== undefined) && alert.kind === 'violation' && (
          <p class="who-whom">
            {agent !== undefined && (
              <span>
                <span class="hint">Culprit</span> <AgentLink agent={agent} />
              </span>
            )}
            {victim !== undefined && (
              <span>
                <span class="hint">Victim</span> <AgentLink agent={victim} />
              </span>
            )}
          </p>
        )}
        <p class="hint">
          {detail} {at !== null && <Ago at={at} />}
        </p>
      </div>
      <span class="row-end">
        <a class="small" href={href} onClick={() => markSeen([id])} aria-label={`${evidence}: ${title}`}>
          {evidence}
        </a>
        {!isSeen && (
          <button type="button" class="small" aria-label={`Mark as seen: ${title}`} onClick={() => markSeen([id])}>
            Mark as seen
          </button>
        )}
      </span>
    </li>
  );
}
