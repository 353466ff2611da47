import { fail, ok } from '../../core/base/result.ts';
import type { CheckCommand, Command, CommandType, Replies } from '../../core/commands.ts';
import type { Effect } from '../../core/effects.ts';
import type { Fault } from '../../core/fault.ts';
import { explain } from '../../core/fault.ts';
import type { Undo } from '../../core/rollback.ts';
import { Refused, StoreUnwritable } from '../../ports/ports.ts';
import type { Report } from '../../webhooks/hooks.ts';
import type { Reply } from '../protocol.ts';

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

export type AuditedReply = Extract<Reply, { type: 'command-reply' }>;
export type SignalEffect = Extract<Effect, { kind: 'signal' }>;

/** What the commands of one batch have changed, to be recorded together or rolled back together. */
export type Batch = {
  readonly bodies: string[];
  readonly replies: AuditedReply[];
  readonly commands: Command[];
  readonly undos: Undo[];
  readonly signals: SignalEffect[];
  readonly appliedAtMs: number;
  /** The number of the latest operation before it. */
  readonly lastOpBefore: number;
  /** How much of the bodies is from callers that are not identified. */
  strangerBytes: number;
  /** The answer of a registration that was rolled back while it waited for its store. */
  refusal: AuditedReply['reply'] | undefined;
  /** Undefined: none. A command that has any is recorded alone. */
  reports: readonly Report[] | undefined;
};

export const newBatch = (appliedAtMs: number, lastOpBefore: number): Batch => ({
  bodies: [],
  replies: [],
  commands: [],
  undos: [],
  signals: [],
  appliedAtMs,
  lastOpBefore,
  strangerBytes: 0,
  refusal: undefined,
  reports: undefined,
});

/** Lets the reports go, or drops them. What cannot be undone has happened, even if it could not be recorded. */
export function settleReports({ reports, undos }: Batch, isRecorded: boolean): void {
  if (reports !== undefined) for (const report of reports) report.settle(isRecorded || undos.length === 0);
}

/** Its checks that may have begun operations. */
export const beginningChecks = ({ commands }: Batch): readonly CheckCommand[] =>
  commands.filter((command): command is CheckCommand => command.type === 'check' && !command.dryRun);
