/** An entry as a card: the event, the parties, the rule; on demand all that is recorded. */
import type { AuditEntry } from '../../base/api-types.ts';
import { agentName, dateTime, shortTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { victimOf } from '../../standing/alert.ts';
import { CopyButton } from '../../ui/dialog.tsx';
import { Actor, AgentLink, Facts, Id, Parts } from '../../ui/names.tsx';
import { opPath } from '../operations/op-row.tsx';
import { policyPath } from '../policies/paths.ts';
import { sentenceOf } from './sentence.ts';

type CardProps = { readonly entry: AuditEntry; readonly isOpen: boolean; readonly onToggle: (isOpen: boolean) => void };

export function EntryCard({ entry, isOpen, onToggle }: CardProps) {
  const { title, subject, tone } = sentenceOf(entry);
  const { lineage, actor } = entry;
  return (
    <details
      class={`entry ${tone}`}
      data-id={entry.id}
      open={isOpen}
      onToggle={(event) => event.currentTarget.open !== isOpen && onToggle(event.currentTarget.open)}
    >
      <summary>
        <time dateTime={entry.timestamp} title={dateTime(entry.timestamp)}>
          {shortTime(entry.timestamp)}
        </time>
        <span class="entry-what">
          <span>
            <strong>{title}</strong> <bdi class="mono">{subject}</bdi>
          </span>
          <span class="hint">
            {lineage.agent_id === null ? <bdi>{actor}</bdi> : <Parts text={agentName(lineage)} />}
            {entry.reason !== null && ` – ${entry.reason}`}
          </span>
        </span>
        {entry.decision !== null && <span class={`state ${entry.decision}`}>{entry.decision}</span>}
      </summary>
      {isOpen && <Whole entry={entry} />}
    </details>
  );
}

function Whole({ entry }: { readonly entry: AuditEntry }) {
  const { lineage, policy, rule_id: rule, op_id: op, payload } = entry;
  const victim = victimOf(entry);
  const isViolation = entry.event_type === 'A2AImpersonationAttempted';
  const approval = typeof payload.approval_id === 'string' ? payload.approval_id : undefined;
  return (
    <div class="entry-whole">
      <Facts
        rows={[
          lineage.agent_id !== null && [isViolation ? 'Culprit' : 'Agent', <AgentLink key="agent" agent={lineage} />],
          victim !== undefined && ['Victim', <AgentLink key="victim" agent={victim} />],
          ['By', <Actor key="actor" name={entry.actor} />],
          op !== null && [
            'Operation',
            <span key="op">
              <a href={opPath({ opId: op, orgId: lineage.org_id, home: undefined })}>timeline</a> <Id id={op} />
            </span>,
          ],
          policy !== null && [
            'Rule',
            <a key="rule" href={policyPath(policy, rule)}>
              {[policy, rule].filter(Boolean).join(' · ')}
            </a>,
          ],
          approval !== undefined && [
            'Approval',
            <a key="approval" href={`/approvals/${encodeURIComponent(approval)}`}>
              {approval}
            </a>,
          ],
          entry.cause != null && [
            'Cause',
            <a key="cause" href={`/audit${queryOf({ cause: entry.cause })}`}>
              {entry.cause}
            </a>,
          ],
          [
            'Entry',
            `${entry.id}${entry.gateway === undefined ? '' : ` of ${entry.gateway}`}, ${dateTime(entry.timestamp)}`,
          ],
          [
            'Hash',
            <code key="hash" class="hash">
              {entry.hash}
            </code>,
          ],
          [
            'Before it',
            <code key="before" class="hash">
              {entry.prev_hash}
            </code>,
          ],
        ]}
      />
      <div class="payload">
        <p class="hint">
          Payload <CopyButton text={JSON.stringify(entry, null, 2)} label="Copy entry as JSON" />
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        <pre class="code" tabIndex={0}>
          {JSON.stringify(payload, null, 2)}
        </pre>
      </div>
    </div>
  );
}
