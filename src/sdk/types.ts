/** The inputs and answers of the SDK. */

/**
 * The canonical identity of an agent is the whole triple. `orgId` is '' for an agent that belongs to no organization. Each name has
 * 1 to 256 bytes, without white space, `/`, and what Unicode calls control, format, private or unassigned characters, and is not `.`
 * or `..`. An organization is not `-` either.
 */
export type AgentId = { readonly orgId: string; readonly teamId: string; readonly agentId: string };

/** What JSON can hold: no function, bigint, Date, NaN or Infinity, which throw a TypeError with the path of the value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
/** `undefined` properties are left out, as JSON does. */
export type JsonObject = { readonly [key: string]: JsonValue | undefined };

/** Whether the action may be taken. */
export type Decision = 'allow' | 'deny';

/** Where an operation stands: `pending` before its decision, `completing` once its end was reported, `terminated` when it was denied or ended by an operator. */
export type OpState = 'pending' | 'running' | 'paused' | 'completing' | 'terminated';

/** One action an agent wants to take. */
export type Action = {
  /** `tool.call`, `llm.call`, `file.write`, `net.connect`, `process.exec` or any other name, up to 256 bytes. */
  readonly action: string;
  /** The target: a tool, a model, a path, a host … Up to 2048 bytes. */
  readonly resource?: string | undefined;
  /** Anything that policy conditions may use. Nested at most 32 deep, at most 1000 keys and 10,000 list items in all. */
  readonly attributes?: JsonObject | undefined;
  /**
   * 0 to 1,000,000 US dollars, reserved in the budgets until the operation ends, or until 10 minutes after its last check with an
   * estimate.
   */
  readonly estimatedCostUsd?: number | undefined;
  /** For a call from one agent to another: who calls, in the words of this agent. No credential vouches for it. */
  readonly caller?: AgentId | undefined;
  /** First half of the operation's id. Left out: that of the operation whose body is running, else a new one. */
  readonly traceId?: string | undefined;
  /** Second half. Left out: a new one. */
  readonly spanId?: string | undefined;
};

/** What `check` asks. */
export type CheckRequest = Action & {
  /** Evaluates, records and answers without registering an operation or reserving budget. */
  readonly dryRun?: boolean | undefined;
};

/** The decision on one action, and where it comes from. */
export type CheckAnswer = {
  readonly decision: Decision;
  /** One sentence for a human: why. */
  readonly reason: string;
  /** The policy document that decided; undefined when none did. */
  readonly policy: string | undefined;
  /** The rule that decided; undefined when none did. */
  readonly ruleId: string | undefined;
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  /**
   * The current state of the operation; undefined when the gateway has not told it, for instance because it has none, cannot record
   * its decisions or was not reached: that says nothing of an operation that runs.
   */
  readonly opState: OpState | undefined;
  /** Number of the audit entry that records the decision; undefined when none does, or its number is not known. */
  readonly auditId: number | undefined;
  /** True when `onUnreachable` decided instead of the gateway. */
  readonly unreachable: boolean;
};

/** What operators do with an operation. */
export type Signal = 'pause' | 'resume' | 'terminate';

/** An operator's order to an operation. */
export type OpSignal = {
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  readonly signal: Signal;
  /** Grows with each signal; one that is sent again has the number it had. */
  readonly sequence: number;
};

/** Money that was spent. */
export type Usage = {
  /** 0 to 1,000,000 US dollars. A fraction of a micro-dollar counts as a whole one. */
  readonly costUsd: number;
  /** The operation it was spent on. */
  readonly opId?: string | undefined;
  /** Your own name for this record, 1 to 256 bytes: for a day, a record repeated under one name is counted once. Left out: a new one. */
  readonly usageId?: string | undefined;
};

/** A usage record is always counted. The answer says whether spending is over a limit now. */
export type UsageAnswer =
  | { readonly status: 'ok' }
  | { readonly status: 'limit_exceeded'; readonly tier: 'global' | 'org' | 'team' | 'agent'; readonly period: 'monthly' | 'daily' };

/**
 * The state of the channel on which signals arrive.
 *
 * `connecting`: not yet connected for the first time. `connected`: signals arrive. `reconnecting`: lost, trying again.
 * `refused`: the gateway rejects the credential, and the client does not try again. `closed`: after `close()`.
 */
export type ClientState = 'connecting' | 'connected' | 'reconnecting' | 'refused' | 'closed';
