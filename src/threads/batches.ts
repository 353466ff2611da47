import type { CheckAnswer, Command } from '../core/commands.ts';
import type { Effect } from '../core/effects.ts';
import type { OpId } from '../core/ids.ts';
import type { Applied, Undo } from '../core/take-back.ts';
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
  allowed: Map<OpId, number> | undefined;
};

export const newBatch = (appliedAtMs: number, since: number): Batch =>
  ({ bodies: [], replies: [], commands: [], undos: [], signals: [], appliedAtMs, since, allowed: undefined });

/** Batches that are applied and not yet known to be recorded, in that order. */
export class UnsettledBatches {
  readonly #batches = new Set<Batch>();

  add(batch: Batch): void { this.#batches.add(batch); }
  delete(batch: Batch): void { this.#batches.delete(batch); }

  /** What the batches have done that were applied after this one. */
  behind(batch: Batch): readonly Applied[] {
    const all = [...this.#batches];
    return all.slice(all.indexOf(batch) + 1).map(appliedIn);
  }
}

export const checkedIn = ({ commands }: Batch): readonly OpId[] => commands.flatMap((command) => (command.type === 'check' && !command.dryRun ? [command.opId] : []));

/** Remembered by the batch, because batches fail in groups, and each asks for all behind it. */
function appliedIn(batch: Batch): Applied {
  if (batch.allowed === undefined) {
    batch.allowed = new Map();
    for (const [at, command] of batch.commands.entries()) {
      const { reply } = batch.replies[at]!;
      if (command.type !== 'check' || command.dryRun || !reply.ok || (reply.value as CheckAnswer).decision !== 'allow') continue;
      batch.allowed.set(command.opId, Math.max(command.estimatedCostMicroUsd, batch.allowed.get(command.opId) ?? 0));
    }
  }
  return { undos: batch.undos, allowed: batch.allowed };
}
