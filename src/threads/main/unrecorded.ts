import { fail, ok } from '../../core/base/result.ts';
import type { CommandType, Replies } from '../../core/commands.ts';
import type { Fault } from '../../core/fault.ts';
import { explain } from '../../core/fault.ts';
import { Refused, StoreUnwritable } from '../../ports/ports.ts';

// The answer to a command whose change could not be recorded: a check is denied, anything else fails (docs/spec.md,
// Audit).

export const AUDIT_UNAVAILABLE = fail({ kind: 'audit_unavailable' } as const);
const DENIED: Replies['check'] = ok({
  decision: 'deny',
  reason: explain({ kind: 'audit_unavailable' }),
  policy: undefined,
  ruleId: undefined,
  cause: 'unrecorded',
  exceeded: undefined,
  opState: undefined,
});

export const unrecordedCommand = (type: CommandType): Replies[CommandType] =>
  type === 'check' ? DENIED : AUDIT_UNAVAILABLE;

/** The same, derived from the answer that it replaces. */
export const unrecordedReply = (reply: Replies[CommandType]): Replies[CommandType] =>
  reply.ok && reply.value !== undefined && 'decision' in reply.value ? DENIED : AUDIT_UNAVAILABLE;

const UNWRITABLE = fail({ kind: 'store_unreachable', retryAfterSecs: 2 } as const);
export const INTERNAL = fail({ kind: 'internal' } as const);

/** The answer where an error kept the gateway from carrying something out. */
export function refusalOf(error: unknown): { readonly ok: false; readonly fault: Fault } {
  if (error instanceof Refused) return fail(error.fault);
  return error instanceof StoreUnwritable ? UNWRITABLE : INTERNAL;
}
