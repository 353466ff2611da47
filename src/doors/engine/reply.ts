/** The one mapping from what went wrong to an HTTP answer (docs/spec.md, Errors). */
import { explain, type Fault, type FaultKind } from '../../core/fault.ts';
import { type Header, type HttpStatus, STATUS_TEXT } from '../shared/http-answer.ts';
import { rateLimitHeaders, retryAfterSecs } from '../shared/rpc-code.ts';
import type { HttpResponse } from './route.ts';

export const HTTP_STATUS = {
  invalid_argument: 400,
  unauthenticated: 401,
  insufficient_scope: 403,
  org_forbidden: 403,
  not_owner: 403,
  own_request: 403,
  not_approver: 403,
  impersonation: 403,
  registration_closed: 403,
  role_forbidden: 403,
  setup_required: 403,
  foreign_origin: 403,
  foreign_host: 421,
  not_found: 404,
  method_not_allowed: 405,
  invalid_transition: 409,
  email_taken: 409,
  ambiguous: 409,
  conflict: 409,
  halted: 409,
  policy_invalid: 409,
  use_publish: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  upgrade_required: 426,
  unknown_model: 400,
  weak_password: 422,
  invalid_invite: 422,
  invalid_reset_token: 422,
  account_locked: 423,
  rate_limited: 429,
  internal: 500,
  account_store_unavailable: 503,
  store_unreachable: 503,
  unreachable_gateway: 503,
  audit_unavailable: 503,
  shutting_down: 503,
  overloaded: 503,
} as const satisfies Record<FaultKind, HttpStatus>;

/** A problem document (RFC 9457) with the headers its status calls for. */
export function problemOf(fault: Fault): HttpResponse {
  const status = HTTP_STATUS[fault.kind];
  const seconds = retryAfterSecs(fault);
  const problem = {
    type: `urn:svc-gateway:problem:${fault.kind}`,
    title: STATUS_TEXT[status],
    status,
    detail: explain(fault),
    code: fault.kind,
    ...extensionsOf(fault),
    ...(seconds > 0 ? { retry_after_secs: seconds } : {}),
  };
  const headers = seconds > 0 ? [['Retry-After', String(seconds)] as const, ...headersOf(fault)] : headersOf(fault);
  return { status, text: { type: 'application/problem+json', content: JSON.stringify(problem) }, headers };
}

/** The parts of a fault that a program needs without parsing the sentence. */
function extensionsOf(fault: Fault): Readonly<Record<string, unknown>> {
  switch (fault.kind) {
    case 'invalid_argument':
      return { field: fault.field };
    case 'unknown_model':
      return { field: 'model' };
    case 'insufficient_scope':
      return { needed_scope: fault.needed };
    case 'invalid_transition':
      return {
        ...('opId' in fault ? { op_id: fault.opId } : { approval_id: fault.approvalId }),
        from: fault.from,
        trigger: fault.trigger,
      };
    case 'ambiguous':
      return { op_id: fault.opId, org_ids: fault.orgIds };
    case 'policy_invalid':
      return { problems: fault.problems };
    default:
      return {};
  }
}

function headersOf(fault: Fault): readonly Header[] {
  switch (fault.kind) {
    case 'unauthenticated':
      return [['WWW-Authenticate', 'Bearer']];
    case 'insufficient_scope':
      return [['WWW-Authenticate', `Bearer error="insufficient_scope", scope="${fault.needed}"`]];
    case 'method_not_allowed':
      return [['Allow', fault.allowed.join(', ')]];
    case 'upgrade_required':
      return [
        ['Upgrade', 'websocket'],
        ['Connection', 'Upgrade'],
        ['Sec-WebSocket-Version', '13'],
      ];
    case 'rate_limited':
      return rateLimitHeaders(fault);
    default:
      return [];
  }
}
