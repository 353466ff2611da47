import type { Command } from '../core/commands.ts';
import type { Effect } from '../core/effects.ts';
import type { OpId } from '../core/ids.ts';
import type { Undo } from '../core/take-back.ts';
import type { Reply } from './protocol.ts';

export type AuditedReply = Extract<Reply, { type: 'command-reply' }>;
export type SignalEffect = Extract<Effect, { kind: 'signal' }>;

/** What the commands of one batch have changed, to be recorded together or taken back together. */
export type Batch = {
  readonly bodies: string[];
  readonly replies: AuditedReply[];
  readonly commands: Command[];
  readonly undos: Undo[];
  readonly signals: SignalEffect[];
  readonly appliedAtMs: number;
  /** The number of the latest operation before it. */
  readonly since: number;
  /** The answer of a registration that was taken back while it waited for its store. */
  refusal: AuditedReply['reply'] | undefined;
};

export const newBatch = (appliedAtMs: number, since: number): Batch =>
  ({ bodies: [], replies: [], commands: [], undos: [], signals: [], appliedAtMs, since, refusal: undefined });

export const checkedIn = ({ commands }: Batch): readonly OpId[] => commands.flatMap((command) => (command.type === 'check' && !command.dryRun ? [command.opId] : []));
