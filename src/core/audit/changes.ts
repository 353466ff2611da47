/** Changes made by people and files: a view of the audit log (docs/spec.md, Changes). */
import type { AuditEntry, AuditEvent } from './audit.ts';

/** By kind: the entries that tell of such a change. */
export const CHANGES = {
  policy: ['PolicyReloaded'],
  key: ['ApiKeyCreated', 'ApiKeyRevoked'],
  account: [
    'AccountRegistered',
    'AccountRoleChanged',
    'AccountDisabled',
    'AccountEnabled',
    'AccountUnlocked',
    'InviteCreated',
    'InviteAccepted',
    'InviteRevoked',
    'PasswordResetCompleted',
  ],
  halt: ['HaltCreated', 'HaltReleased'],
  webhook: ['WebhookCreated', 'WebhookDeleted', 'WebhookTakenOver'],
  settings: ['SettingsChanged'],
  agent: ['AgentRegistered', 'AgentDeregistered'],
} as const satisfies Record<string, readonly AuditEvent[]>;
export type ChangeKind = keyof typeof CHANGES;
type ChangeEvent = (typeof CHANGES)[ChangeKind][number];

export const CHANGE_EVENTS: readonly AuditEvent[] = Object.values(CHANGES).flat();
const KIND_OF = new Map<AuditEvent, ChangeKind>(
  (Object.keys(CHANGES) as ChangeKind[]).flatMap((kind) => CHANGES[kind].map((event) => [event, kind] as const)),
);

export type Change = {
  /** RFC 3339. */
  readonly at: string;
  readonly kind: ChangeKind;
  /** A sentence. */
  readonly summary: string;
  readonly by: string;
  readonly auditId: number;
  /** The entry's payload. */
  readonly details: AuditEntry['payload'];
};

/** Undefined for an entry that tells of no change. */
export function changeOf(entry: AuditEntry): Change | undefined {
  const kind = KIND_OF.get(entry.event_type);
  if (kind === undefined) return undefined;
  const { timestamp: at, actor: by, id: auditId, payload: details } = entry;
  return { at, kind, summary: SUMMARIES[entry.event_type as ChangeEvent](entry), by, auditId, details };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null));
const inOrg = ({ lineage: { org_id } }: AuditEntry): string => (org_id === null ? '' : ` of org ${org_id}`);
const agentOf = ({ lineage: { org_id, team_id, agent_id } }: AuditEntry): string =>
  `${org_id ?? ''}/${team_id ?? ''}/${agent_id ?? ''}`;
const because = ({ reason }: AuditEntry): string => (reason === null ? '' : `: ${reason}`);
const account = ({ payload }: AuditEntry): string => text(payload.email);

/** Settings that are named in a summary; all of them are in the details. */
const MOST_NAMED = 5;

function settingsIn({ payload: { changed } }: AuditEntry): string {
  const names = Array.isArray(changed) ? changed.map(({ name }: { readonly name?: unknown }) => text(name)) : [];
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const SUMMARIES: Readonly<Record<ChangeEvent, (entry: AuditEntry) => string>> = {
  PolicyReloaded: ({ payload: { version, documents, changed } }) =>
    changed === false
      ? `policies reloaded without a change: version ${text(version)}`
      : `policies changed: version ${text(version)}, ${text(documents)} documents`,
  ApiKeyCreated: (entry) => `key ${text(entry.payload.name)} created${inOrg(entry)}`,
  ApiKeyRevoked: (entry) => `key ${text(entry.payload.name ?? entry.payload.key_id)} revoked${inOrg(entry)}`,
  AccountRegistered: (entry) => `account ${account(entry)} registered`,
  AccountRoleChanged: (entry) => `account ${account(entry)} is now ${text(entry.payload.role)}`,
  AccountDisabled: (entry) => `account ${account(entry)} disabled`,
  AccountEnabled: (entry) => `account ${account(entry)} enabled`,
  AccountUnlocked: (entry) => `account ${account(entry)} unlocked`,
  InviteCreated: (entry) => `${account(entry)} invited as ${text(entry.payload.role)}`,
  InviteAccepted: (entry) => `${account(entry)} accepted an invite`,
  InviteRevoked: (entry) => `the invite of ${account(entry)} revoked`,
  PasswordResetCompleted: (entry) => `the password of ${account(entry)} reset`,
  HaltCreated: (entry) => `halt of ${text(entry.payload.scope)}${because(entry)}`,
  HaltReleased: (entry) => `halt of ${text(entry.payload.scope)} released${because(entry)}`,
  WebhookCreated: (entry) => `webhook to ${text(entry.payload.host)} created${inOrg(entry)}`,
  WebhookDeleted: (entry) => `webhook to ${text(entry.payload.host)} deleted${inOrg(entry)}`,
  WebhookTakenOver: (entry) =>
    `webhook to ${text(entry.payload.host)}${inOrg(entry)} taken over from ${text(entry.payload.from)}`,
  SettingsChanged: (entry) => `settings changed: ${settingsIn(entry)}`,
  AgentRegistered: (entry) =>
    entry.payload.rotated === true
      ? `the token of agent ${agentOf(entry)} rotated`
      : `agent ${agentOf(entry)} registered`,
  AgentDeregistered: (entry) => `agent ${agentOf(entry)} removed`,
};
