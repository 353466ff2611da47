/** An audit entry as an event of the Open Cybersecurity Schema Framework 1.9: API Activity (docs/audit-sinks.md). */
import type { AuditEntry } from './audit.ts';
import { GENESIS_HASH } from './audit-line.ts';

const OCSF_VERSION = '1.9.0';
const API_ACTIVITY = 6003;
const PRODUCT = 'svc-gateway';
const SHA_256 = { algorithm: 'SHA-256', algorithm_id: 3 } as const;

const ACTIVITIES = { create: 1, read: 2, update: 3, delete: 4, other: 99 } as const;

/** The activity of each event; the first pattern that fits decides. */
const ACTIVITY_OF: readonly (readonly [RegExp, keyof typeof ACTIVITIES])[] = [
  [/(Created|Registered|Issued|Requested|Started)$/, 'create'],
  [/(Deregistered|Deleted|Revoked|Released|Forgotten|Cancelled|Ended)$/, 'delete'],
  [/(Changed|Reloaded|Disabled|Enabled|Locked|Unlocked|Completed|Terminated|Paused|Resumed|Accepted)$/, 'update'],
];

const SEVERITY = { informational: 1, low: 2, medium: 3, high: 4 } as const;
const STATUS = { unknown: 0, success: 1, failure: 2 } as const;
/** Actions and dispositions of the profile `security_control`. */
const ALLOWED = { action: 'Allowed', action_id: 1, disposition: 'Allowed', disposition_id: 1 } as const;
const DENIED = { action: 'Denied', action_id: 2, disposition: 'Blocked', disposition_id: 2 } as const;

type Json = Readonly<Record<string, unknown>>;

/** `line`: as it stands in the log, so that its hash can be checked. */
export function ocsfOf(entry: AuditEntry, line: string, version: string): Json {
  const { id, event_type: type, decision, reason, payload, op_id: opId } = entry;
  const timeMs = Date.parse(entry.timestamp);
  const activity = activityOf(type);
  const activityId = ACTIVITIES[activity];
  const isFailure = decision === 'deny' || /(Failed|Attempted|Exceeded|Denied|Expired)$/.test(type);
  return {
    category_uid: 6,
    category_name: 'Application Activity',
    class_uid: API_ACTIVITY,
    class_name: 'API Activity',
    activity_id: activityId,
    activity_name: activity === 'other' ? type : activity[0]?.toUpperCase() + activity.slice(1),
    type_uid: API_ACTIVITY * 100 + activityId,
    time: timeMs,
    severity_id: severityOf(type, isFailure),
    status_id: isFailure ? STATUS.failure : STATUS.success,
    ...(entry.cause != null && { status_code: entry.cause }),
    ...(reason !== null && { message: reason, status_detail: reason }),
    ...(decision === 'allow' && ALLOWED),
    ...(decision === 'deny' && DENIED),
    ...(entry.policy !== null && { policy: policyOf(entry) }),
    actor: { user: { uid: entry.actor, ...actorType(entry.actor) } },
    api: {
      operation: textIn(payload, 'action') ?? type,
      service: { name: PRODUCT, ...(entry.gateway !== undefined && { uid: entry.gateway }) },
      request: { uid: opId ?? String(id) },
    },
    src_endpoint: sourceOf(entry),
    ...resourcesOf(payload),
    ...agentContext(entry),
    metadata: {
      version: OCSF_VERSION,
      profiles: ['ai_operation', 'record_integrity', 'security_control'],
      product: { name: PRODUCT, vendor_name: PRODUCT, version },
      uid: String(id),
      sequence: id,
      event_code: type,
      log_name: 'audit',
      ...(opId !== null && { correlation_uid: opId }),
      ...(entry.lineage.org_id !== null && { tenant_uid: entry.lineage.org_id }),
    },
    attestation_list: [attestationOf(entry)],
    unmapped: { lineage: entry.lineage, rule_id: entry.rule_id, payload },
    raw_data: line,
  };
}

const activityOf = (type: string): keyof typeof ACTIVITIES =>
  ACTIVITY_OF.find(([ending]) => ending.test(type))?.[1] ?? 'other';

function severityOf(type: string, isFailure: boolean): number {
  if (type === 'A2AImpersonationAttempted' || type === 'AccountLocked') return SEVERITY.high;
  if (type === 'BudgetLimitExceeded' || type === 'HaltCreated') return SEVERITY.medium;
  return isFailure ? SEVERITY.low : SEVERITY.informational;
}

const policyOf = ({ policy, rule_id: ruleId, reason }: AuditEntry): Json => ({
  name: policy,
  is_applied: true,
  ...(ruleId !== null && { uid: ruleId }),
  ...(reason !== null && { desc: reason }),
});

const USER_TYPES: Readonly<Record<string, number>> = { anonymous: 0, account: 1, gateway: 3, key: 4 };
const OTHER_TYPE = 99;

/** `agent`, `key`, `account`, `gateway` or `anonymous`, and what the schema calls it. */
function actorType(actor: string): Json {
  const [type = actor] = actor.split(':', 1);
  return { type, type_id: USER_TYPES[type] ?? OTHER_TYPE };
}

/** The address is known of sign-ins only. */
function sourceOf({ actor, payload }: AuditEntry): Json {
  const ip = textIn(payload, 'address') ?? textIn(payload, 'client');
  return { name: actor, ...(ip !== undefined && /^[0-9a-f.:]+$/i.test(ip) && { ip }) };
}

function resourcesOf(payload: Json): Json {
  const name = textIn(payload, 'resource');
  return name === undefined || name === '' ? {} : { resources: [{ name }] };
}

/** The agent whose call it is, as a message of it to a tool. */
function agentContext({ lineage: { agent_id: agentId }, op_id: opId }: AuditEntry): Json {
  if (agentId === null) return {};
  return {
    message_context: {
      ai_role: 'Agent',
      ai_role_id: 4,
      application: { name: agentId, type: 'AI Agent' },
      ...(opId !== null && { uid: opId }),
    },
  };
}

/** The chain of hashes: this entry's, and that of the one before. */
const attestationOf = ({ id, hash, prev_hash: previous, gateway }: AuditEntry): Json => ({
  uid: String(id),
  chain_uid: gateway ?? PRODUCT,
  fingerprint: { ...SHA_256, value: hash },
  ...(previous !== GENESIS_HASH && {
    prev_event: { uid: String(id - 1), fingerprint: { ...SHA_256, value: previous } },
  }),
});

function textIn(payload: Json, member: string): string | undefined {
  const value = payload[member];
  return typeof value === 'string' ? value : undefined;
}
