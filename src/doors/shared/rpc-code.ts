/** How faults become errors of gRPC and Connect. The HTTP API has a table of its own, in doors/engine/reply.ts. */
import type { Fault, FaultKind } from '../../core/fault.ts';
import type { Header, HttpStatus } from './http-answer.ts';

// When a refused caller may try again.

/** After how many seconds it makes sense to try again; 0 when it never does. */
export const retryAfterSecs = (fault: Fault): number =>
  'retryAfterSecs' in fault ? fault.retryAfterSecs : fault.kind === 'audit_unavailable' ? 1 : 0;

/**
 * The headers of a refused request: the limit in requests per minute, and that none is left (docs/spec.md, Rate
 * limits).
 */
export const rateLimitHeaders = ({
  limit,
  retryAfterSecs,
}: Extract<Fault, { kind: 'rate_limited' }>): readonly Header[] => [
  ['RateLimit-Policy', `"default";q=${limit};w=60`],
  ['RateLimit', `"default";r=0;t=${retryAfterSecs}`],
];

/** The status codes of gRPC by the names that Connect gives them, with Connect's HTTP status. */
export const RPC_HTTP_STATUS = {
  invalid_argument: 400,
  failed_precondition: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  internal: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
} as const satisfies Record<string, HttpStatus>;
export type RpcCode = keyof typeof RPC_HTTP_STATUS;

export const RPC_CODE = {
  invalid_argument: 'invalid_argument',
  unauthenticated: 'unauthenticated',
  insufficient_scope: 'permission_denied',
  org_forbidden: 'permission_denied',
  role_forbidden: 'permission_denied',
  not_owner: 'permission_denied',
  own_request: 'permission_denied',
  not_approver: 'permission_denied',
  impersonation: 'permission_denied',
  registration_closed: 'permission_denied',
  setup_required: 'permission_denied',
  foreign_origin: 'permission_denied',
  foreign_host: 'permission_denied',
  not_found: 'not_found',
  method_not_allowed: 'unimplemented',
  unsupported_media_type: 'invalid_argument',
  upgrade_required: 'invalid_argument',
  invalid_transition: 'failed_precondition',
  email_taken: 'already_exists',
  ambiguous: 'failed_precondition',
  conflict: 'already_exists',
  halted: 'failed_precondition',
  policy_invalid: 'failed_precondition',
  use_publish: 'failed_precondition',
  unknown_model: 'invalid_argument',
  weak_password: 'invalid_argument',
  invalid_invite: 'invalid_argument',
  invalid_reset_token: 'invalid_argument',
  account_locked: 'permission_denied',
  rate_limited: 'resource_exhausted',
  account_store_unavailable: 'unavailable',
  store_unreachable: 'unavailable',
  unreachable_gateway: 'unavailable',
  audit_unavailable: 'unavailable',
  shutting_down: 'unavailable',
  overloaded: 'resource_exhausted',
  payload_too_large: 'resource_exhausted',
  internal: 'internal',
} as const satisfies Record<FaultKind, RpcCode>;
