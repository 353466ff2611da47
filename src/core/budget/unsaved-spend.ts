import type { Envelope, Spend } from './envelope.ts';
import { type BudgetChange, keyOfOwner, type PeriodSpend, type SpendRow } from './rows.ts';
import type { RunningPeriods } from './running.ts';
import type { EnvelopeTree } from './tree.ts';

/** Spend that the store does not have yet, and the rows that it may delete. */
export class UnsavedSpend {
  readonly #tree: EnvelopeTree;
  readonly #periods: RunningPeriods;
  #dirty: Envelope[] = [];
  #dropped = new Set<string>(); // keys of rows

  constructor(tree: EnvelopeTree, periods: RunningPeriods) {
    this.#tree = tree;
    this.#periods = periods;
  }

  /** Something was spent: the row comes with the next changes, with the values it has then. */
  mark(envelope: Envelope): void {
    if (envelope.dirty || envelope.isPlaceholder) return;
    envelope.dirty = true;
    this.#dirty.push(envelope);
  }

  /** The envelope was removed. */
  drop(envelope: Envelope): void {
    if (envelope.stored) this.#dropped.add(keyOfOwner(envelope.owner()));
  }

  /** Returns the changes since the last call. */
  drain(): BudgetChange[] {
    const changes: BudgetChange[] = [...this.#dropped].map((key) => ({ key, row: undefined }));
    for (const envelope of this.#dirty) {
      envelope.dirty = false;
      envelope.stored = true;
      const row = this.#rowOf(envelope);
      changes.push({ key: keyOfOwner(row), row });
    }
    this.#dropped = new Set();
    this.#dirty = [];
    return changes;
  }

  /** The store could not write the row. */
  requeue(row: SpendRow): void {
    const envelope = this.#ownerOf(row);
    if (envelope !== undefined) this.mark(envelope);
  }

  /** Returns the envelope with the spend of the row. Undefined: its periods have ended, or there is no room for it. */
  restore(row: SpendRow): Envelope | undefined {
    const { window, epoch } = this.#periods;
    const monthly = stillCounts(row.monthly, window.month);
    const daily = stillCounts(row.daily, window.day);
    const isOver = monthly.spentMicroUsd === 0 && daily.spentMicroUsd === 0;
    const envelope = isOver ? undefined : this.#ownerOf(row);
    if (envelope === undefined) {
      this.#dropped.add(keyOfOwner(row));
      return undefined;
    }
    envelope.setSpend(monthly, daily, epoch);
    envelope.stored = true;
    if (row.monthly.name > window.month || row.daily.name > window.day) this.mark(envelope);
    return envelope;
  }

  #rowOf(envelope: Envelope): SpendRow {
    const { window, epoch } = this.#periods;
    const monthly = { name: window.month, ...envelope.spend('monthly', epoch) };
    const daily = { name: window.day, ...envelope.spend('daily', epoch) };
    return { kind: 'spend', ...envelope.owner(), monthly, daily };
  }

  /** Undefined if there is no room for it. Its money is in the rows of the wider tiers, too. */
  #ownerOf({ tier, orgId, teamId, agentId }: SpendRow): Envelope | undefined {
    const names = [orgId, teamId, agentId].filter((name) => name !== null);
    // Who is registered is not known yet.
    const envelope = this.#tree.at(names, true);
    return envelope.tier === tier ? envelope : undefined;
  }
}

/** A period later than the current one was written by a wrong clock; its money counts in the current one. */
const stillCounts = (spend: PeriodSpend, running: string): Spend =>
  spend.name >= running ? spend : { spentMicroUsd: 0, alertedPercent: 0 };
