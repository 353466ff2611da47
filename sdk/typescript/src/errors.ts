/** Everything the SDK throws: one class per kind, for `instanceof`. */
import type { CheckAnswer, Denial } from './types.ts';

/** gRPC's status codes, by name. */
export type GatewayErrorCode =
  | 'cancelled'
  | 'unknown'
  | 'invalid_argument'
  | 'deadline_exceeded'
  | 'not_found'
  | 'already_exists'
  | 'permission_denied'
  | 'resource_exhausted'
  | 'failed_precondition'
  | 'aborted'
  | 'out_of_range'
  | 'unimplemented'
  | 'internal'
  | 'unavailable'
  | 'data_loss'
  | 'unauthenticated';

type GatewayErrorDetails = {
  readonly fault?: string | undefined;
  readonly retryAfterMs?: number;
  readonly isUnsent?: boolean;
};

/**
 * The gateway has refused a call, or could not be reached for it.
 *
 *     if (error instanceof GatewayError && error.code === 'unavailable') return later();
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: GatewayErrorCode;
  /**
   * The gateway's own error code (`invalid_transition`, `overloaded` …); undefined if there is none, because the
   * gateway was not reached, refused the request unread, or a proxy answered in its place.
   */
  readonly fault: string | undefined;
  /** Milliseconds to wait before a retry, as suggested by the gateway; 0 if it suggests none. */
  readonly retryAfterMs: number;
  /** True when there was no connection to send the call on, so that the gateway cannot have seen it. */
  readonly isUnsent: boolean;

  constructor(
    code: GatewayErrorCode,
    message: string,
    { fault, retryAfterMs = 0, isUnsent = false }: GatewayErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.fault = fault;
    this.retryAfterMs = retryAfterMs;
    this.isUnsent = isUnsent;
  }
}

/** The action must not be taken; `run` has not called its body. */
export class ActionDeniedError extends Error {
  override readonly name: string = 'ActionDeniedError';
  /** Why, in one sentence for people. */
  readonly reason: string;
  /** Why, in one word for programs; undefined if the gateway did not say. */
  override readonly cause: Denial['cause'];
  /** If a budget denied it: whose. */
  readonly tier: Denial['tier'];
  /** If a budget denied it: of which period. */
  readonly period: Denial['period'];
  /** If a budget or a limit denied it: when it begins anew, so that trying again can help. */
  readonly resetsAt: Denial['resetsAt'];
  /** An alternative for the agent; undefined if the policy names none. */
  readonly remedy: string | undefined;
  /** The policy document that decided; undefined when none did. */
  readonly policy: string | undefined;
  /** The rule that decided; undefined when none did. */
  readonly ruleId: string | undefined;
  /** The approval that decided, or that nobody has decided in time. Undefined: none. */
  readonly approvalId: string | undefined;
  /** `<trace_id>:<span_id>`. */
  readonly opId: string;
  /** True when the gateway could not be reached and `onUnreachable` denied. */
  readonly unreachable: boolean;

  constructor(
    action: string,
    resource: string | undefined,
    { reason, cause, tier, period, resetsAt, remedy, policy, ruleId, approvalId, opId, unreachable }: CheckAnswer,
  ) {
    super(`${nameOf(action, resource)} is denied: ${reason}`);
    this.reason = reason;
    this.cause = cause;
    this.tier = tier;
    this.period = period;
    this.resetsAt = resetsAt;
    this.remedy = remedy;
    this.policy = policy;
    this.ruleId = ruleId;
    this.approvalId = approvalId;
    this.opId = opId;
    this.unreachable = unreachable;
  }
}

const nameOf = (action: string, resource: string | undefined): string =>
  `${action}${resource === undefined ? '' : ` on ${resource}`}`;

/**
 * People have to approve the action, or more of a limit, and `run` was asked not to wait for them. Run it again, with
 * the same `traceId` and `spanId`, once they have.
 */
export class ApprovalPendingError extends ActionDeniedError {
  override readonly name = 'ApprovalPendingError';

  constructor(action: string, resource: string | undefined, answer: CheckAnswer) {
    super(action, resource, answer);
    this.message = `${nameOf(action, resource)} waits for people: ${answer.reason}`;
  }
}

/**
 * An operator has terminated the operation, or policy or a budget has denied it when the gateway came back from an
 * outage: the body must not continue.
 * Also the `reason` of the operation's AbortSignal.
 */
export class OpTerminatedError extends Error {
  override readonly name = 'OpTerminatedError';
  /** The operation that was terminated: the body's own, or one around it. */
  readonly opId: string;

  constructor(opId: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.opId = opId;
  }
}

/**
 * Given to `onWarning` when the agent's new token counts, and some gateways of a cluster have not confirmed that the
 * one before it is no longer valid. They follow when they reach their database again.
 */
export class UnconfirmedWarning extends Error {
  override readonly name = 'UnconfirmedWarning';
  /** The names of these gateways. */
  readonly gateways: readonly string[];

  constructor(gateways: readonly string[]) {
    super(`not confirmed in time by ${gateways.join(', ')}: the change may not be in force there yet`);
    this.gateways = gateways;
  }
}

/** The client was closed before the call finished, or before it was made. */
export class ClientClosedError extends Error {
  override readonly name = 'ClientClosedError';

  constructor(options?: ErrorOptions) {
    super('the agent client is closed', options);
  }
}
