import { REFUSAL } from './agents/refusal.ts';
import type { ApprovalState, ApprovalTrigger } from './approvals/approval.ts';
import type { OpId } from './base/ids.ts';
import { assertNever, fail, type Result } from './base/result.ts';
import type { Role, Scope } from './identity/roles.ts';
import type { OpState, OpTrigger } from './ops/op-state.ts';

/**
 * Everything that a caller can get wrong, and everything that the gateway can run out of. The kind is also the `code`
 * of the problem document a client sees (docs/spec.md, Errors), so kinds are part of the public API.
 */
export type Fault =
  | { readonly kind: 'invalid_argument'; readonly field: string; readonly problem: string }
  | { readonly kind: 'unauthenticated'; readonly detail: string }
  | { readonly kind: 'insufficient_scope'; readonly needed: Scope; readonly held: readonly Scope[] }
  /**
   * `orgId` '': the thing asked for has no org. Undefined: it concerns every org, and the credential is bound to one.
   */
  | { readonly kind: 'org_forbidden'; readonly orgId: string | undefined }
  | { readonly kind: 'role_forbidden'; readonly role: Role }
  | { readonly kind: 'not_owner'; readonly opId: OpId }
  /** The token presented is another agent's. */
  | { readonly kind: 'impersonation' }
  | { readonly kind: 'registration_closed' }
  | { readonly kind: 'setup_required' }
  | { readonly kind: 'foreign_origin'; readonly origin: string }
  | { readonly kind: 'foreign_host'; readonly host: string }
  | { readonly kind: 'not_found'; readonly what: string }
  | { readonly kind: 'invalid_transition'; readonly opId: OpId; readonly from: OpState; readonly trigger: OpTrigger }
  | {
      readonly kind: 'invalid_transition';
      readonly approvalId: string;
      readonly from: ApprovalState;
      readonly trigger: ApprovalTrigger;
    }
  /** The requester may not approve, with whatever credential. */
  | { readonly kind: 'own_request'; readonly approvalId: string }
  | { readonly kind: 'not_approver'; readonly approvalId: string; readonly approvers: readonly string[] }
  /** A halt covers it. */
  | { readonly kind: 'halted'; readonly haltId: string; readonly reason: string }
  | { readonly kind: 'email_taken'; readonly email: string }
  /** Several orgs have an operation of this id. '': agents without an org. */
  | { readonly kind: 'ambiguous'; readonly opId: OpId; readonly orgIds: readonly string[] }
  | { readonly kind: 'conflict'; readonly detail: string }
  | { readonly kind: 'policy_invalid'; readonly problems: readonly string[] }
  /** The policies of a cluster are published to all its gateways, not read from the files of one. */
  | { readonly kind: 'use_publish' }
  /** Nobody knows what its tokens cost. */
  | { readonly kind: 'unknown_model'; readonly model: string; readonly provider: string | undefined }
  | { readonly kind: 'weak_password'; readonly problem: string }
  | { readonly kind: 'invalid_invite' }
  | { readonly kind: 'invalid_reset_token' }
  | { readonly kind: 'account_locked'; readonly retryAfterSecs: number }
  | { readonly kind: 'rate_limited'; readonly retryAfterSecs: number; readonly limit: number }
  | { readonly kind: 'account_store_unavailable' }
  | { readonly kind: 'store_unreachable'; readonly retryAfterSecs: number }
  /** Another gateway of the cluster did not answer: what was asked of it may have been done. */
  | { readonly kind: 'unreachable_gateway'; readonly gateway: string; readonly retryAfterSecs: number }
  | { readonly kind: 'audit_unavailable' }
  | { readonly kind: 'shutting_down'; readonly retryAfterSecs: number }
  | { readonly kind: 'overloaded'; readonly retryAfterSecs: number; readonly what: string }
  | { readonly kind: 'method_not_allowed'; readonly allowed: readonly string[] }
  | { readonly kind: 'unsupported_media_type'; readonly expected: string }
  | { readonly kind: 'upgrade_required' }
  | { readonly kind: 'payload_too_large'; readonly limitBytes: number }
  | { readonly kind: 'internal' };

export type FaultKind = Fault['kind'];

/** Says which part of a request does not fit, and what it must be. */
export const invalid = (field: string, problem: string): Result<never, Fault> =>
  fail({ kind: 'invalid_argument', field, problem });

export const unauthenticated = (detail: string): Result<never, Fault> => fail({ kind: 'unauthenticated', detail });

/** Explanations without parameters. */
const FIXED = {
  impersonation: REFUSAL.impersonation,
  registration_closed: 'registration is closed; ask an administrator for an invite',
  setup_required:
    'the first account needs the setup link that the gateway printed when it started, or the admin API key as bearer',
  invalid_invite: 'this invite is invalid, expired or already used; ask for a new one',
  invalid_reset_token: 'this reset token is invalid, expired or already used; request a new one',
  account_store_unavailable:
    'this gateway has no account store; set SVC_DATABASE_URL to enable sign-in with e-mail and password',
  store_unreachable: 'the database is unreachable or not writable at the moment; try again shortly',
  audit_unavailable: 'the audit log cannot be written; until it can, everything that must be recorded is refused',
  shutting_down: 'the gateway is shutting down; reconnect',
  upgrade_required: 'this path is a WebSocket endpoint; connect with a WebSocket client',
  internal: 'internal error; see the log of the gateway',
} as const satisfies Partial<Record<FaultKind, string>>;
type FixedKind = keyof typeof FIXED;
const isFixed = (fault: Fault): fault is Extract<Fault, { kind: FixedKind }> => fault.kind in FIXED;

/** In a sentence; the others are counted. */
const MAX_NAMED_ORGS = 10;

function namesOf(orgIds: readonly string[]): string {
  const named = orgIds.slice(0, MAX_NAMED_ORGS).map((orgId) => (orgId === '' ? '"" (no org)' : orgId));
  const others = orgIds.length - named.length;
  return named.join(', ') + (others > 0 ? ` and ${others} more` : '');
}

/**
 * Explains a fault to a human in one sentence: what happened and, where it is not plain, what to do. Never holds a
 * secret.
 */
export function explain(fault: Fault): string {
  if (isFixed(fault)) return FIXED[fault.kind];
  switch (fault.kind) {
    case 'invalid_argument':
      return `${fault.field}: ${fault.problem}`;
    case 'unauthenticated':
      return fault.detail;
    case 'insufficient_scope':
      return `this requires the ${fault.needed} scope; the credential has ${fault.held.join(', ') || 'no scopes'}`;
    case 'org_forbidden':
      return fault.orgId === undefined
        ? 'this affects every org, but the credential is bound to one'
        : `this credential has no access to ${fault.orgId === '' ? 'anything without an org' : `org ${fault.orgId}`}`;
    case 'role_forbidden':
      return `this credential may not grant or revoke the role ${fault.role}`;
    case 'not_owner':
      return `operation ${fault.opId} belongs to another agent`;
    case 'foreign_origin':
      return `requests from origin ${fault.origin} are not allowed`;
    case 'foreign_host':
      return `this gateway is not ${fault.host}; call it by its own address, or set SVC_PUBLIC_URL to the URL that people use`;
    case 'not_found':
      return `${fault.what} not found`;
    case 'invalid_transition':
      return explainTransition(fault);
    case 'own_request':
      return `approval ${fault.approvalId} was requested by the person behind this credential; somebody else must approve it`;
    case 'not_approver':
      return `approval ${fault.approvalId} is for ${fault.approvers.join(', ')} to decide`;
    case 'halted':
      return `halt ${fault.haltId} is in force: ${fault.reason}`;
    case 'email_taken':
      return `an account for ${fault.email} already exists`;
    case 'ambiguous':
      return `several orgs have an operation ${fault.opId}: ${namesOf(fault.orgIds)}; choose one with org_id`;
    case 'conflict':
      return fault.detail;
    case 'policy_invalid':
      return `the policies were not loaded; the previous set stays in force: ${fault.problems.join('; ')}`;
    case 'use_publish':
      return 'the policies of a cluster are published to all its gateways: use `svc policy publish`';
    case 'unknown_model':
      return `the price of model ${fault.model}${fault.provider === undefined ? '' : ` of ${fault.provider}`} is unknown; report cost_usd, or have it added to SVC_PRICES_PATH`;
    case 'weak_password':
      return fault.problem;
    case 'account_locked':
      return `too many failed attempts; try again in ${seconds(fault.retryAfterSecs)}`;
    case 'rate_limited':
      return `the rate limit of ${fault.limit} requests per minute is exceeded; try again in ${seconds(fault.retryAfterSecs)}`;
    case 'unreachable_gateway':
      return `gateway ${fault.gateway} did not answer in time, and may have carried out the request; check before you retry`;
    case 'overloaded':
      return `${fault.what} is at its limit; try again in ${seconds(fault.retryAfterSecs)}`;
    case 'method_not_allowed':
      return `method not allowed; this path supports ${fault.allowed.join(', ')}`;
    case 'unsupported_media_type':
      return `send the body as ${fault.expected}`;
    case 'payload_too_large':
      return `the body is larger than ${fault.limitBytes} bytes`;
    default:
      return assertNever(fault);
  }
}

const seconds = (count: number): string => (count === 1 ? '1 second' : `${count} seconds`);

const explainTransition = (fault: Extract<Fault, { kind: 'invalid_transition' }>): string => {
  const what = 'opId' in fault ? `operation ${fault.opId}` : `approval ${fault.approvalId}`;
  // People read this: to them, what has reported its end has completed.
  return `cannot ${fault.trigger} ${what}: it ${fault.from === 'completing' ? 'has completed' : `is ${fault.from}`}`;
};
