import type { Command } from '../core/commands.ts';
import type { Effect } from '../core/effects.ts';
import type { OpId } from '../core/ids.ts';
import type { Undo } from '../core/rollback.ts';
import type { Reply } from './protocol.ts';

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
  /** The answer of a registration that was rolled back while it waited for its store. */
  refusal: AuditedReply['reply'] | undefined;
};

export const newBatch = (appliedAtMs: number, lastOpBefore: number): Batch => ({
  bodies: [],
  replies: [],
  commands: [],
  undos: [],
  signals: [],
  appliedAtMs,
  lastOpBefore,
  refusal: undefined,
});

/** The operations that its checks may have begun. */
export const checkedOps = ({ commands }: Batch): readonly OpId[] =>
  commands.flatMap((command) => (command.type === 'check' && !command.dryRun ? [command.opId] : []));
