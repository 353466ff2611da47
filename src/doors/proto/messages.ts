/**
 * The messages of `svc.governance.v1` as plain values. Enums are the lower-case words of the core (`allow`, `running`);
 * `unspecified` stands for zero and for values of a newer schema. A uint64 is a number: the gateway issues none above
 * 2^53, and a Timestamp is milliseconds since 1970. A field that is absent and has no default is `undefined`.
 */
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import type { OpState } from '../../core/ops/op-state.ts';

export type JsonObject = { readonly [key: string]: unknown };

export type AgentId = { readonly orgId: string; readonly teamId: string; readonly agentId: string };

export type CheckActionRequest = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly action: string;
  readonly resource: string;
  readonly attributes: JsonObject | undefined;
  readonly estimatedCostUsd: number;
  readonly caller: AgentId | undefined;
  readonly dryRun: boolean;
  readonly correlationId: string;
  readonly supportedObligations: readonly string[];
  readonly opHome: string;
};

/** A check whose fields are still being read. */
export type CheckDraft = { -readonly [Field in keyof CheckActionRequest]: CheckActionRequest[Field] };

const NO_TEXTS: readonly string[] = [];

/** A check without any field. All have the same hidden class. */
export const emptyCheck = (): CheckDraft => ({
  agent: undefined,
  credentialToken: '',
  traceId: '',
  spanId: '',
  action: '',
  resource: '',
  attributes: undefined,
  estimatedCostUsd: 0,
  caller: undefined,
  dryRun: false,
  correlationId: '',
  supportedObligations: NO_TEXTS,
  opHome: '',
});

export type CheckActionResponse = {
  readonly decision: 'unspecified' | 'allow' | 'deny' | 'pending';
  readonly reason: string;
  readonly policy: string;
  readonly ruleId: string;
  readonly opId: string;
  readonly opState: 'unspecified' | OpState;
  readonly auditId: number;
  readonly correlationId: string;
  readonly cause: (typeof CAUSE_WORDS)[number];
  readonly tier: BudgetTier;
  readonly period: BudgetPeriod;
  readonly resetsAt: number | undefined;
  readonly approvalId: string;
  readonly obligations: readonly Obligation[];
  readonly opHome: string;
  readonly remedy: string;
};
/** Before anything is known: every field as if it had not been sent. */
export const NO_ANSWER: CheckActionResponse = {
  decision: 'unspecified',
  reason: '',
  policy: '',
  ruleId: '',
  opId: '',
  opState: 'unspecified',
  auditId: 0,
  correlationId: '',
  cause: 'unspecified',
  tier: 'unspecified',
  period: 'unspecified',
  resetsAt: undefined,
  approvalId: '',
  obligations: [],
  opHome: '',
  remedy: '',
};
/** In the order of their numbers. */
export const CAUSE_WORDS = ['unspecified', ...DECISION_CAUSES] as const;
export type Obligation = {
  readonly id: string;
  readonly type: string;
  readonly properties: JsonObject | undefined;
};
type BudgetTier = 'unspecified' | 'global' | 'org' | 'team' | 'agent';
type BudgetPeriod = 'unspecified' | 'monthly' | 'daily';
export type BatchCheckActionsRequest = { readonly requests: readonly CheckActionRequest[] };
export type BatchCheckActionsResponse = { readonly responses: readonly StreamCheckActionsResponse[] };
export type StreamCheckActionsRequest = CheckActionRequest;
export type StreamCheckActionsResponse = CheckActionResponse & { readonly error?: CheckError | undefined };
export type CheckError = { readonly code: string; readonly message: string; readonly retryAfterSecs: number };

export type RegisterAgentRequest = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly parent: AgentId | undefined;
};
export type RegisterAgentResponse = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly rotated: boolean;
};
export type DeregisterAgentRequest = { readonly agent: AgentId | undefined };
export type DeregisterAgentResponse = Readonly<Record<never, never>>;
/** In place of a cost: what the gateway is to price. '' and undefined: not given. */
export type TokenFields = {
  readonly model: string;
  readonly provider: string;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly cacheReadTokens: number | undefined;
  readonly cacheWriteTokens: number | undefined;
};
export type CompleteOpRequest = TokenFields & {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly opId: string;
  readonly costUsd: number | undefined;
  readonly outcome: 'unspecified' | 'success' | 'failure';
  readonly error: string;
  readonly opHome: string;
};
export type CompleteOpResponse = {
  readonly opId: string;
  readonly opState: 'unspecified' | OpState;
  readonly costUsd: number | undefined;
};
export type RecordUsageRequest = TokenFields & {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly costUsd: number | undefined;
  readonly opId: string | undefined;
  readonly usageId: string | undefined;
  readonly opHome: string;
};
export type RecordUsageResponse = {
  readonly status: 'unspecified' | 'ok' | 'limit_exceeded';
  readonly tier: BudgetTier;
  readonly period: BudgetPeriod;
  readonly costUsd: number | undefined;
};
export type OpControlStreamRequest = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly resumeAfter: number | undefined;
};
export type OpControlStreamResponse = {
  readonly opId: string;
  readonly signal: 'unspecified' | 'pause' | 'resume' | 'terminate';
  readonly sequence: number;
};
export type AckOpControlRequest = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly opId: string;
  readonly sequence: number;
  readonly opHome: string;
};
export type AckOpControlResponse = Readonly<Record<never, never>>;

type ApprovalState = 'unspecified' | 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'used';
export type WaitApprovalRequest = {
  readonly agent: AgentId | undefined;
  readonly credentialToken: string;
  readonly approvalId: string;
};
export type WaitApprovalResponse = {
  readonly approvalId: string;
  readonly state: ApprovalState;
  readonly reason: string;
  readonly expiresAt: number | undefined;
};
export type CancelApprovalRequest = WaitApprovalRequest;
export type CancelApprovalResponse = { readonly approvalId: string; readonly state: ApprovalState };

/** Every message, by its name in the schema. */
export type Messages = {
  AgentId: AgentId;
  CheckActionRequest: CheckActionRequest;
  CheckActionResponse: CheckActionResponse;
  BatchCheckActionsRequest: BatchCheckActionsRequest;
  BatchCheckActionsResponse: BatchCheckActionsResponse;
  StreamCheckActionsRequest: StreamCheckActionsRequest;
  StreamCheckActionsResponse: StreamCheckActionsResponse;
  CheckError: CheckError;
  Obligation: Obligation;
  RegisterAgentRequest: RegisterAgentRequest;
  RegisterAgentResponse: RegisterAgentResponse;
  DeregisterAgentRequest: DeregisterAgentRequest;
  DeregisterAgentResponse: DeregisterAgentResponse;
  CompleteOpRequest: CompleteOpRequest;
  CompleteOpResponse: CompleteOpResponse;
  RecordUsageRequest: RecordUsageRequest;
  RecordUsageResponse: RecordUsageResponse;
  OpControlStreamRequest: OpControlStreamRequest;
  OpControlStreamResponse: OpControlStreamResponse;
  AckOpControlRequest: AckOpControlRequest;
  AckOpControlResponse: AckOpControlResponse;
  WaitApprovalRequest: WaitApprovalRequest;
  WaitApprovalResponse: WaitApprovalResponse;
  CancelApprovalRequest: CancelApprovalRequest;
  CancelApprovalResponse: CancelApprovalResponse;
};
export type MessageName = keyof Messages;
type MethodOf<Name> = Name extends `${infer Method}Request` ? Method : never;
export type MethodName = MethodOf<MessageName>;
