/** Changes, as the gateway lists them or as the audit log tells of them. Pure. */
import type { AuditEntry } from '../../base/api-types.ts';
import { sentenceOf } from '../audit/sentence.ts';

export type Change = {
  readonly at: string;
  readonly kind: string;
  readonly summary: string;
  readonly by: string | null;
  readonly audit_id: number | null;
  readonly details: unknown;
  /** Of the entry that it was made of. */
  readonly event?: AuditEntry['event_type'];
};

const KIND: Readonly<Partial<Record<AuditEntry['event_type'], string>>> = {
  PolicyReloaded: 'policy',
  ApiKeyCreated: 'key',
  ApiKeyRevoked: 'key',
  AccountRegistered: 'account',
  AccountRoleChanged: 'account',
  AccountDisabled: 'account',
  AccountEnabled: 'account',
  InviteCreated: 'account',
  HaltCreated: 'halt',
  HaltReleased: 'halt',
  WebhookCreated: 'webhook',
  WebhookDeleted: 'webhook',
  AgentRegistered: 'agent',
  AgentDeregistered: 'agent',
};

export const EVENTS_OF_CHANGE = Object.keys(KIND) as readonly AuditEntry['event_type'][];

export function changeOf(entry: AuditEntry): Change {
  const { title, subject } = sentenceOf(entry);
  const { org_id: org, team_id: team, agent_id: agent } = entry.lineage;
  const whom = agent === null ? '' : `${org ?? '–'} / ${team} / ${agent}`;
  return {
    at: entry.timestamp,
    kind: KIND[entry.event_type] ?? 'settings',
    summary: [title, whom, subject].filter((text) => text !== '').join(' – '),
    by: entry.actor,
    audit_id: entry.id,
    details: entry.payload,
    event: entry.event_type,
  };
}
