/** The history of an operation, in order: its record and the audit log, told as moments. Pure. */
import type { AuditEntry, OpRecord } from '../../base/api-types.ts';
import { wordOf } from '../../live/op.ts';
import { entryPath } from '../../standing/alert.ts';

export type Tone = 'good' | 'bad' | 'wait' | 'plain';

export type Moment = {
  readonly key: string;
  readonly at: string;
  readonly title: string;
  readonly detail: string;
  readonly by: string | null;
  readonly tone: Tone;
  readonly href: string | null;
  /** Since the moment before. */
  readonly afterMs: number | null;
};

const WORDS: Readonly<Record<string, readonly [string, Tone]>> = {
  ActionAllowed: ['Allowed', 'good'],
  ActionDenied: ['Denied', 'bad'],
  A2ACallIntercepted: ['Call between agents', 'plain'],
  A2AImpersonationAttempted: ['Impersonation', 'bad'],
  BudgetLimitExceeded: ['Denied: over budget', 'bad'],
  OpRegistered: ['Registered', 'plain'],
  OpPaused: ['Paused', 'wait'],
  OpResumed: ['Resumed', 'good'],
  OpTerminated: ['Terminated', 'bad'],
  OpCompleted: ['Completed', 'good'],
  ApprovalRequested: ['Approval asked for', 'wait'],
  ApprovalApproved: ['Approved', 'good'],
  ApprovalDenied: ['Approval denied', 'bad'],
  ApprovalExpired: ['Approval expired', 'bad'],
  ApprovalCancelled: ['Approval cancelled', 'plain'],
  ApprovalUsed: ['Approval used', 'good'],
};

export const wordsOfEvent = (event: string): readonly [string, Tone] =>
  WORDS[event] ?? [event.replace(/(?<=[a-z])(?=[A-Z])/g, ' '), 'plain'];

function momentOf(entry: AuditEntry): Omit<Moment, 'afterMs'> {
  const { payload, policy, rule_id: rule } = entry;
  const [title, tone] = wordsOfEvent(entry.event_type);
  const isFailure = payload.outcome === 'failure';
  const parts = [
    typeof payload.action === 'string' ? `${payload.action} ${String(payload.resource ?? '')}`.trim() : '',
    entry.reason ?? '',
    typeof payload.error === 'string' ? payload.error : '',
    policy === null ? '' : `rule ${[policy, rule].filter(Boolean).join(' · ')}`,
  ];
  return {
    key: `${entry.gateway ?? ''} ${entry.id}`,
    at: entry.timestamp,
    title: payload.dry_run === true ? `${title} (dry run)` : isFailure ? 'Failed' : title,
    detail: parts.filter((part) => part !== '').join(' – '),
    by: entry.actor,
    tone: isFailure ? 'bad' : tone,
    href: entryPath(entry),
  };
}

/**
 * Adds the moments that the record knows and the log does not: that the agent acknowledged a signal, and its spending.
 */
function momentsOfRecord(record: OpRecord): readonly Omit<Moment, 'afterMs'>[] {
  const { acknowledged_at: acknowledged, ended, spent_usd: spent, updated_at: updated } = record;
  const plain = { by: null, tone: 'plain', href: null } as const;
  return [
    ...(acknowledged === null
      ? []
      : [{ ...plain, key: 'acknowledged', at: acknowledged, title: 'Signal acknowledged by the agent', detail: '' }]),
    ...(ended === null && spent === 0
      ? []
      : [
          {
            ...plain,
            key: 'now',
            at: updated,
            title: ended === null ? 'Usage so far' : `Ended: ${wordOf(record)}`,
            detail: spent > 0 ? `$${spent} spent` : '',
          },
        ]),
  ];
}

/** The oldest first. */
export function timelineOf(record: OpRecord | undefined, entries: readonly AuditEntry[]): readonly Moment[] {
  const moments = [...entries.map(momentOf), ...(record === undefined ? [] : momentsOfRecord(record))].sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at),
  );
  return moments.map((moment, at) => {
    const before = moments[at - 1];
    return { ...moment, afterMs: before === undefined ? null : Date.parse(moment.at) - Date.parse(before.at) };
  });
}
