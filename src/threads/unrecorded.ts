/**
 * The answer to a command whose change could not be recorded: a check is denied, anything else fails (contract: Audit).
 */
import type { CommandType, Replies } from '../core/commands.ts';
import { explain } from '../core/fault.ts';
import { fail, ok } from '../core/result.ts';

export const AUDIT_UNAVAILABLE = fail({ kind: 'audit_unavailable' } as const);
const DENIED: Replies['check'] = ok({
  decision: 'deny',
  reason: explain({ kind: 'audit_unavailable' }),
  policy: undefined,
  ruleId: undefined,
  opState: undefined,
});

export const unrecordedCommand = (type: CommandType): Replies[CommandType] =>
  type === 'check' ? DENIED : AUDIT_UNAVAILABLE;

/** The same, derived from the answer that it replaces. */
export const unrecordedReply = (reply: Replies[CommandType]): Replies[CommandType] =>
  reply.ok && reply.value !== undefined && 'decision' in reply.value ? DENIED : AUDIT_UNAVAILABLE;
