/** What became of one attempt to have an action checked. */
import type { Answered } from './check-stream.ts';
import { GatewayError, type GatewayErrorCode } from './errors.ts';
import type { CheckReply, StreamCheckReply } from './schema.ts';
import { isUnsent } from './unreachable.ts';

export type Attempt =
  | { readonly kind: 'answer'; readonly reply: CheckReply }
  /** The gateway says that it cannot decide now. */
  | { readonly kind: 'busy'; readonly because: string; readonly retryAfterMs: number }
  /** `isUnsent`: there was no connection. Otherwise nobody knows whether the gateway has seen it. */
  | { readonly kind: 'lost'; readonly because: string; readonly isUnsent: boolean }
  | { readonly kind: 'late' }
  | { readonly kind: 'refused'; readonly error: GatewayError };

/** The fault of a gateway that is shutting down. It may have decided before. */
const LEAVING = 'shutting_down';
/** The faults of a gateway that cannot decide at the moment. */
const BUSY_FAULTS: ReadonlySet<string> = new Set([
  'overloaded',
  'rate_limited',
  'audit_unavailable',
  'store_unreachable',
]);
const CODE_OF_FAULT: Readonly<Record<string, GatewayErrorCode>> = {
  invalid_argument: 'invalid_argument',
  unauthenticated: 'unauthenticated',
  insufficient_scope: 'permission_denied',
  org_forbidden: 'permission_denied',
  not_owner: 'permission_denied',
  impersonation: 'permission_denied',
  not_found: 'not_found',
  payload_too_large: 'resource_exhausted',
  internal: 'internal',
};

/** The error of a broken stream says little about one of its checks, so each is asked again on its own. */
export function attemptOnStream(answered: Answered): Attempt {
  if (answered.kind === 'answered') return attemptOfReply(answered.reply);
  const { error } = answered;
  return error.fault === 'payload_too_large' ? { kind: 'refused', error } : lostBy(error);
}

export function attemptOfError(error: GatewayError): Attempt {
  const { code, fault, message, retryAfterMs } = error;
  if (fault === LEAVING) return lostBy(error);
  if (fault !== undefined)
    return BUSY_FAULTS.has(fault) ? { kind: 'busy', because: message, retryAfterMs } : { kind: 'refused', error };
  switch (code) {
    case 'deadline_exceeded':
      return { kind: 'late' };
    case 'resource_exhausted':
      return { kind: 'busy', because: message, retryAfterMs };
    case 'invalid_argument':
    case 'unimplemented':
    case 'unauthenticated':
    case 'permission_denied':
      return { kind: 'refused', error };
    default:
      return lostBy(error);
  }
}

function lostBy({ message, cause }: GatewayError): Attempt {
  return {
    kind: 'lost',
    because: message,
    isUnsent: cause instanceof Error && 'details' in cause && isUnsent(String(cause.details)),
  };
}

function attemptOfReply(reply: StreamCheckReply): Attempt {
  const { error } = reply;
  if (error == null) return { kind: 'answer', reply };
  const { code, message, retryAfterSecs } = error;
  if (code === LEAVING) return { kind: 'lost', because: message, isUnsent: false };
  if (BUSY_FAULTS.has(code)) return { kind: 'busy', because: message, retryAfterMs: retryAfterSecs * 1000 };
  return {
    kind: 'refused',
    error: new GatewayError(CODE_OF_FAULT[code] ?? 'unknown', message, {
      fault: code,
      retryAfterMs: retryAfterSecs * 1000,
    }),
  };
}
