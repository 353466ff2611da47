/** The messages of `proto/`, as they are in memory. */
import { requireText } from './text.ts';
import type { AgentId, JsonObject, JsonValue, TokenUsage } from './types.ts';

export type OfAgent = { readonly agent: AgentId; readonly credentialToken: string };

/** Undefined fields are not sent, in this and all other requests. */
export type CheckMessage = OfAgent & {
  readonly traceId: string;
  readonly spanId: string;
  readonly action: string;
  readonly resource: string | undefined;
  readonly attributes: Struct | undefined;
  readonly estimatedCostUsd: number | undefined;
  readonly caller: AgentId | undefined;
  readonly dryRun: boolean | undefined;
  readonly correlationId?: string;
  readonly supportedObligations?: readonly string[];
  readonly opHome?: string | undefined;
};
/** Enums are numbers here; 64-bit numbers come as the library has them, for `numberOf`. */
export type CheckReply = {
  readonly decision: number;
  readonly reason: string;
  readonly policy: string;
  readonly ruleId: string;
  readonly opId: string;
  readonly opState: number;
  readonly auditId: WireNumber;
  readonly correlationId: string;
  readonly cause: number;
  readonly tier: number;
  readonly period: number;
  readonly resetsAt?: WireTime | null;
  readonly approvalId: string;
  readonly obligations: readonly { readonly id: string; readonly type: string; readonly properties?: Struct | null }[];
  readonly opHome: string;
  readonly remedy: string;
};
export type StreamCheckReply = CheckReply & {
  readonly error?: { readonly code: string; readonly message: string; readonly retryAfterSecs: number } | null;
};
export type SignalReply = { readonly opId: string; readonly signal: number; readonly sequence: WireNumber };

/** Every unary method that the SDK calls: what goes out, what comes back. */
export type Methods = {
  CheckAction: { readonly request: CheckMessage; readonly response: CheckReply };
  RegisterAgent: {
    readonly request: { readonly agent: AgentId; readonly parent: AgentId | undefined };
    readonly response: { readonly credentialToken: string; readonly rotated: boolean };
  };
  CompleteOp: {
    readonly request: OfAgent &
      Partial<TokenUsage> & {
        readonly opId: string;
        readonly costUsd?: number | undefined;
        readonly outcome?: number;
        readonly error?: string;
        readonly opHome: string | undefined;
      };
    readonly response: { readonly opState: number };
  };
  RecordUsage: {
    readonly request: OfAgent &
      ({ readonly costUsd: number } | TokenUsage) & {
        readonly opId: string | undefined;
        readonly usageId: string;
        readonly opHome: string | undefined;
      };
    readonly response: {
      readonly status: number;
      readonly tier: number;
      readonly period: number;
      readonly costUsd?: number | null | undefined;
    };
  };
  AckOpControl: {
    readonly request: OfAgent & {
      readonly opId: string;
      readonly sequence: number;
      readonly opHome?: string | undefined;
    };
    readonly response: object;
  };
  WaitApproval: {
    readonly request: OfAgent & { readonly approvalId: string };
    readonly response: { readonly state: number; readonly reason: string; readonly expiresAt?: WireTime | null };
  };
  CancelApproval: {
    readonly request: OfAgent & { readonly approvalId: string };
    readonly response: { readonly state: number };
  };
};
export type MethodName = keyof Methods;

export const DECISIONS = ['unspecified', 'allow', 'deny', 'pending'] as const;
export const OP_STATES = ['unspecified', 'pending', 'running', 'paused', 'completing', 'terminated'] as const;
export const CAUSES = [
  'unspecified',
  'rule',
  'no_rule',
  'condition_error',
  'budget',
  'credential',
  'operation_state',
  'halt',
  'approval',
  'obligation',
  'unrecorded',
  'limit',
] as const;
export const APPROVAL_STATES = [
  'unspecified',
  'pending',
  'approved',
  'denied',
  'expired',
  'cancelled',
  'used',
] as const;
export const OUTCOMES = ['unspecified', 'success', 'failure'] as const;
export const SIGNALS = ['unspecified', 'pause', 'resume', 'terminate'] as const;
export const BUDGET_STATUSES = ['unspecified', 'ok', 'limit_exceeded'] as const;
export const TIERS = ['unspecified', 'global', 'org', 'team', 'agent'] as const;
export const PERIODS = ['unspecified', 'monthly', 'daily'] as const;

/** A 64-bit number as the library has it. */
export type WireNumber = number | { readonly low: number; readonly high: number };

/** Sequences and audit ids stay far below 2^53. */
export const numberOf = (value: WireNumber): number =>
  typeof value === 'number' ? value : (value.low >>> 0) + (value.high >>> 0) * 2 ** 32;

/** A moment as the library has it. */
export type WireTime = { readonly seconds?: WireNumber | null; readonly nanos?: number | null };

export const dateOf = ({ seconds, nanos }: WireTime): Date =>
  new Date(numberOf(seconds ?? 0) * 1000 + Math.floor((nanos ?? 0) / 1e6));

const PACKAGE = 'svc.governance.v1';
const SERVICES: { readonly [N in MethodName | StreamName]: string } = {
  CheckAction: 'PolicyService',
  StreamCheckActions: 'PolicyService',
  RegisterAgent: 'AgentService',
  CompleteOp: 'AgentService',
  RecordUsage: 'AgentService',
  AckOpControl: 'AgentService',
  OpControlStream: 'AgentService',
  WaitApproval: 'ApprovalService',
  CancelApproval: 'ApprovalService',
};
type StreamName = 'StreamCheckActions' | 'OpControlStream';

/** `svc.governance.v1.PolicyService`. */
export const serviceOf = (name: MethodName | StreamName): string => `${PACKAGE}.${SERVICES[name]}`;
/** `/svc.governance.v1.PolicyService/CheckAction`. */
export const pathOf = (name: MethodName | StreamName): string => `/${serviceOf(name)}/${name}`;

/** JSON as google.protobuf.Struct, in the plain form that the protobuf library encodes. */
export type Struct = { readonly fields: Readonly<Record<string, Value>> };
type Value =
  | { readonly nullValue: 0 }
  | { readonly numberValue: number }
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly structValue: Struct }
  | { readonly listValue: { readonly values: readonly Value[] } };

/** The way back. */
export const objectOf = ({ fields }: Struct): JsonObject =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, jsonOf(value)]));

/** Converts the library's own objects, which inherit the defaults of every other kind. */
function jsonOf(value: Value): JsonValue {
  const has = (kind: string): boolean => Object.hasOwn(value, kind);
  if ('structValue' in value && has('structValue')) return objectOf(value.structValue);
  if ('listValue' in value && has('listValue')) return value.listValue.values.map(jsonOf);
  if ('numberValue' in value && has('numberValue')) return value.numberValue;
  if ('stringValue' in value && has('stringValue')) return value.stringValue;
  return 'boolValue' in value && has('boolValue') ? value.boolValue : null;
}

/**
 * Throws a TypeError that names the path of a value JSON cannot represent: a function, a bigint, a Date, a number that
 * is not finite, half a character, a circle.
 */
export function structOf(object: JsonObject, path = 'attributes', parents: readonly unknown[] = []): Struct {
  const kind = Object.prototype.toString.call(object).slice('[object '.length, -1);
  // A Date or a Map does not hold its content in properties, and would arrive empty.
  if (kind !== 'Object') throw new TypeError(`${path} must be a plain object, not ${kind}`);
  const fields: Record<string, Value> = Object.create(null) as Record<string, Value>;
  const within = enter(object, path, parents);
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    requireText(key, `a key of ${path}`);
    fields[key] = valueOf(value, `${path}.${key}`, within);
  }
  return { fields };
}

function valueOf(value: JsonValue | undefined, path: string, parents: readonly unknown[]): Value {
  switch (typeof value) {
    case 'string':
      requireText(value, path);
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${path} must be a finite number`);
      return { numberValue: value };
    case 'undefined':
      return { nullValue: 0 };
    case 'object':
      if (value === null) return { nullValue: 0 };
      if (Array.isArray(value)) return listOf(value as readonly JsonValue[], path, parents);
      return { structValue: structOf(value as JsonObject, path, parents) };
    default:
      throw new TypeError(`${path} is a ${typeof value}, which JSON cannot represent`);
  }
}

function listOf(list: readonly JsonValue[], path: string, parents: readonly unknown[]): Value {
  const within = enter(list, path, parents);
  return { listValue: { values: list.map((item, index) => valueOf(item, `${path}[${index}]`, within)) } };
}

function enter(value: unknown, path: string, parents: readonly unknown[]): readonly unknown[] {
  if (parents.includes(value)) throw new TypeError(`${path} contains itself`);
  return [...parents, value];
}
