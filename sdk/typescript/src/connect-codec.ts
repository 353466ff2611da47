/** The messages as JSON, for the Connect protocol. Fields that an older or newer gateway lacks or adds do no harm. */
import {
  APPROVAL_STATES,
  BUDGET_STATUSES,
  CAUSES,
  type CheckReply,
  DECISIONS,
  type MethodName,
  type Methods,
  OP_STATES,
  OUTCOMES,
  objectOf,
  PERIODS,
  type Struct,
  structOf,
  TIERS,
  type WireTime,
} from './schema.ts';
import type { JsonObject } from './types.ts';

type Json = Readonly<Record<string, unknown>>;

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');
const objectIn = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;

/** Words of a newer gateway are 0, unspecified. */
const enumIn =
  (prefix: string, words: readonly string[]) =>
  (value: unknown): number =>
    Math.max(
      0,
      words.findIndex((word) => `${prefix}_${word.toUpperCase()}` === value),
    );
const decisionIn = enumIn('DECISION', DECISIONS);
const opStateIn = enumIn('OP_STATE', OP_STATES);
const causeIn = enumIn('DECISION_CAUSE', CAUSES);
const tierIn = enumIn('BUDGET_TIER', TIERS);
const periodIn = enumIn('BUDGET_PERIOD', PERIODS);
const statusIn = enumIn('BUDGET_STATUS', BUDGET_STATUSES);
const approvalStateIn = enumIn('APPROVAL_STATE', APPROVAL_STATES);

function timeIn(value: unknown): WireTime | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? null : { seconds: Math.floor(ms / 1000), nanos: (((ms % 1000) + 1000) % 1000) * 1e6 };
}

/** The library's form of JSON, which came as JSON. */
const structIn = (value: unknown): Struct | null => {
  const object = objectIn(value);
  return object === undefined ? null : structOf(object as JsonObject, 'properties');
};

const obligationsIn = (value: unknown): CheckReply['obligations'] =>
  (Array.isArray(value) ? value : []).map((each: unknown) => {
    const { id, type, properties } = objectIn(each) ?? {};
    return { id: textIn(id), type: textIn(type), properties: structIn(properties) };
  });

const checkReplyIn = (json: Json): CheckReply => ({
  decision: decisionIn(json.decision),
  reason: textIn(json.reason),
  policy: textIn(json.policy),
  ruleId: textIn(json.ruleId),
  opId: textIn(json.opId),
  opState: opStateIn(json.opState),
  auditId: Number(json.auditId ?? 0),
  correlationId: textIn(json.correlationId),
  cause: causeIn(json.cause),
  tier: tierIn(json.tier),
  period: periodIn(json.period),
  resetsAt: timeIn(json.resetsAt),
  approvalId: textIn(json.approvalId),
  obligations: obligationsIn(json.obligations),
  opHome: textIn(json.opHome),
  remedy: textIn(json.remedy),
});

const REPLIES: { readonly [N in MethodName]: (json: Json) => Methods[N]['response'] } = {
  CheckAction: checkReplyIn,
  RegisterAgent: (json) => ({ credentialToken: textIn(json.credentialToken), rotated: json.rotated === true }),
  CompleteOp: (json) => ({ opState: opStateIn(json.opState) }),
  RecordUsage: (json) => ({
    status: statusIn(json.status),
    tier: tierIn(json.tier),
    period: periodIn(json.period),
    costUsd: typeof json.costUsd === 'number' ? json.costUsd : undefined,
  }),
  AckOpControl: () => ({}),
  WaitApproval: (json) => ({
    state: approvalStateIn(json.state),
    reason: textIn(json.reason),
    expiresAt: timeIn(json.expiresAt),
  }),
  CancelApproval: (json) => ({ state: approvalStateIn(json.state) }),
};

/** Throws where the answer is no JSON object: somebody else than a gateway has sent it. */
export function replyIn<N extends MethodName>(name: N, text: string): Methods[N]['response'] {
  const json = objectIn(JSON.parse(text));
  if (json === undefined) throw new TypeError('it is not an object');
  return REPLIES[name](json);
}

/** Undefined fields are left out. */
export function jsonOfRequest(request: Methods[MethodName]['request']): string {
  const { attributes, outcome, ...fields } = request as { readonly attributes?: Struct; readonly outcome?: number };
  return JSON.stringify({
    ...fields,
    attributes: attributes === undefined ? undefined : objectOf(attributes),
    outcome: outcome === undefined ? undefined : `OUTCOME_${OUTCOMES[outcome]?.toUpperCase()}`,
  });
}
