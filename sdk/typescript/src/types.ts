/** The inputs and answers of the SDK. */
import type { CallOptions } from './waiters.ts';

/**
 * The canonical identity of an agent is the whole triple. `orgId` is '' for an agent without an organization. Each name
 * has 1 to 256 bytes, without white space, `/`, or Unicode control, format, private-use or unassigned characters, and
 * must not be `.` or `..`. An organization must not be `-` either.
 */
export type AgentId = { readonly orgId: string; readonly teamId: string; readonly agentId: string };

/** A JSON value: no function, bigint, Date, NaN or Infinity, which throw a TypeError with the path of the value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
/** `undefined` properties are left out, as JSON does. */
export type JsonObject = { readonly [key: string]: JsonValue | undefined };

/** Whether the action may be taken. `pending`: not before people have approved it; until then it must not be. */
export type Decision = 'allow' | 'deny' | 'pending';

/** The kind of an obligation; see `Obligation`. */
export type ObligationType = 'redact' | 'set' | 'cap' | 'notify';

/**
 * A duty of the caller that comes with an allow: `redact` the values at the `paths`, `set` the `value` at the `path`,
 * `cap` the number at the `path` to `max`, `notify` the operator of the `message`. Paths are names with dots between
 * them, in the attributes, or in the result if they begin with `result.`.
 */
export type Obligation = {
  readonly id: string;
  readonly type: ObligationType | (string & {});
  readonly properties: JsonObject;
};

/** `used`: an allowed check has used it. */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled' | 'used';

/** The state of the approval that an action waits for. */
export type Approval = {
  readonly approvalId: string;
  readonly state: ApprovalState;
  /** The reason of the last decision; undefined when none was given. */
  readonly reason: string | undefined;
  /** Until when it can be decided or, once approved, used; undefined if the gateway did not say. */
  readonly expiresAt: Date | undefined;
};

/**
 * State of an operation: `pending` before its decision, `completing` once its end was reported, `terminated` when
 * denied or terminated by an operator.
 */
export type OpState = 'pending' | 'running' | 'paused' | 'completing' | 'terminated';

/** An action an agent wants to take. */
export type Action = {
  /** `tool.call`, `llm.call`, `file.write`, `net.connect`, `process.exec` or any other name, up to 256 bytes. */
  readonly action: string;
  /** The target: a tool, a model, a path, a host … Up to 2048 bytes. */
  readonly resource?: string | undefined;
  /**
   * Additional data for policy conditions. Nested at most 32 levels deep, with at most 1000 keys and 10,000 list items
   * in total.
   */
  readonly attributes?: JsonObject | undefined;
  /**
   * 0 to 1,000,000 US dollars, reserved in the budgets until the operation ends, or until 10 minutes after its last
   * check with an estimate.
   */
  readonly estimatedCostUsd?: number | undefined;
  /** For a call from one agent to another: the caller, as claimed by this agent. No credential proves it. */
  readonly caller?: AgentId | undefined;
  /** First half of the operation's id. Default: that of the operation whose body is running, else a new one. */
  readonly traceId?: string | undefined;
  /** Second half. Default: a new one. */
  readonly spanId?: string | undefined;
  /**
   * The types of obligations that your code fulfils. An allow that has others is a deny with the cause `obligation`.
   * Default of `check`: none. `run` shows notices and edits what the body returns by itself, and offers the edited
   * attributes as `op.attributes`: name all types here if the body uses them in place of its own. Otherwise an allow
   * that changes attributes is a deny.
   */
  readonly supportedObligations?: readonly ObligationType[] | undefined;
};

/** The request of `check`. */
export type CheckRequest = Action & {
  /** Evaluate, record and answer, but register no operation and reserve no budget. */
  readonly dryRun?: boolean | undefined;
};

/**
 * Why an action was denied, in one word: by a `rule`, because there is `no_rule` that allows it, or the condition of
 * one failed; by a `budget`; for the `credential`; because the operation is paused, ended or another agent's; by an
 * operator's `halt`; by a person who was asked for `approval`; because of an `obligation` that the caller does not
 * support; because it could not be recorded; or because a `limit` of use is reached.
 */
export type DenialCause =
  | 'rule'
  | 'no_rule'
  | 'condition_error'
  | 'budget'
  | 'credential'
  | 'operation_state'
  | 'halt'
  | 'approval'
  | 'obligation'
  | 'unrecorded'
  | 'limit';

/** A rule's message to the operator about an action that it allows. */
export type Notice = {
  readonly message: string;
  readonly opId: string;
  readonly action: string;
  readonly resource: string | undefined;
};

/** Facts about a denial for programs. */
export type Denial = {
  /** Undefined unless denied by a gateway that says why. */
  readonly cause: DenialCause | undefined;
  /** If a budget denied it: whose. */
  readonly tier: 'global' | 'org' | 'team' | 'agent' | undefined;
  /** If a budget denied it: of which period. */
  readonly period: 'monthly' | 'daily' | undefined;
  /** If a budget or a limit denied it: when it begins anew, so that asking again can help. */
  readonly resetsAt: Date | undefined;
};

/** The decision on one action, and where it comes from. */
export type CheckAnswer = Denial & {
  readonly decision: Decision;
  /** Why, in one sentence for people. */
  readonly reason: string;
  /** The policy document that decided; undefined when none did. */
  readonly policy: string | undefined;
  /** The rule that decided; undefined when none did. */
  readonly ruleId: string | undefined;
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  /**
   * The current state of the operation; undefined if the gateway did not say, for example because there is none,
   * decisions cannot be recorded, or the gateway was unreachable. A running operation is not affected by that.
   */
  readonly opState: OpState | undefined;
  /** Id of the audit entry that records the decision; undefined if there is none, or its id is unknown. */
  readonly auditId: number | undefined;
  /** The approval that a pending action waits for, or that has decided: for `waitApproval`. Undefined: none. */
  readonly approvalId: string | undefined;
  /** Duties of the caller, if allowed. `run` does them; after `check` they are up to you. */
  readonly obligations: readonly Obligation[];
  /** An alternative to the denied action, if a policy, a budget or a halt names one. */
  readonly remedy: string | undefined;
  /** True when `onUnreachable` decided instead of the gateway. */
  readonly unreachable: boolean;
};

/** A signal of an operator to an operation. */
export type Signal = 'pause' | 'resume' | 'terminate';

/** An operator's order to an operation. */
export type OpSignal = {
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  readonly signal: Signal;
  /** Increases with each signal; a repeated signal keeps its number. */
  readonly sequence: number;
};

/** How `run` goes about an action. */
export type RunOptions = CallOptions & {
  /**
   * An action that people have to approve waits for them (`wait`, the default), or rejects with an ApprovalPendingError
   * (`throw`): then run it again with the same `traceId` and `spanId`, once they have decided.
   */
  readonly approvals?: 'wait' | 'throw' | undefined;
};

/** How an operation has ended. */
export type Completion = CallOptions & {
  /** 0 to 1,000,000 US dollars that it has spent, besides what was recorded before. */
  readonly costUsd?: number | undefined;
  /** In its place, the tokens that it has used. With an unknown model the operation goes on: complete it otherwise. */
  readonly usage?: TokenUsage | undefined;
  /** The error of a failed operation; if longer than 1,024 bytes, its beginning. */
  readonly error?: string | undefined;
};

/** A model's use of tokens; the gateway knows its prices. */
export type TokenUsage = {
  readonly model: string;
  readonly provider?: string | undefined;
  /** With those read from and written to a cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
};

/** The tokens that an operation has used, counted once for each `usageId`. */
export type OwnUsage = TokenUsage & Pick<Usage, 'usageId'>;

type NoTokens = { readonly [K in keyof TokenUsage]?: undefined };

/** Money that was spent, or the tokens that it was spent on. */
export type Usage = (
  | ({
      /** 0 to 1,000,000 US dollars, rounded up to whole micro-dollars. */
      readonly costUsd: number;
    } & NoTokens)
  | (TokenUsage & { readonly costUsd?: undefined })
) & {
  /** The operation it was spent on. */
  readonly opId?: string | undefined;
  /** Idempotency key, 1 to 256 bytes: for a day, records with the same key count once. Default: a new one. */
  readonly usageId?: string | undefined;
};

/** A usage record is always counted. The answer says whether spending is over a limit now. */
export type UsageAnswer = (
  | { readonly status: 'ok' }
  | {
      readonly status: 'limit_exceeded';
      readonly tier: 'global' | 'org' | 'team' | 'agent';
      readonly period: 'monthly' | 'daily';
    }
) & {
  /** The gateway's price of the tokens, in US dollars; undefined if a cost was reported. */
  readonly costUsd?: number | undefined;
};

/**
 * State of the stream on which signals arrive.
 *
 * `connecting`: not yet connected for the first time. `connected`: signals arrive. `reconnecting`: lost, trying again.
 * `refused`: the gateway rejects the credential, and the client does not try again. `closed`: after `close()`.
 */
export type ClientState = 'connecting' | 'connected' | 'reconnecting' | 'refused' | 'closed';
