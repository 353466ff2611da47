import type { Approval } from '../../core/approvals/approval.ts';
import type { Effect } from '../../core/effects.ts';
import type { Stats } from '../../core/stats/stats.ts';
import type { AgentStore, DecisionStore, SavedAt } from '../../ports/ports.ts';
import type { ControlSharing } from '../../ports/sharing.ts';
import type { Report } from '../../webhooks/hooks.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import type { Batch } from './batch.ts';
import type { EventBoard } from './event-board.ts';
import type { IoThreads } from './io-threads.ts';
import type { SpendSaver } from './spend-saver.ts';

export type EffectRunnerOptions = {
  readonly controls?: ControlSharing | undefined;
  readonly agents: AgentStore;
  readonly states: DecisionStore;
  /** Wakes those who wait for the approval. */
  readonly onApproval: (approval: Approval) => void;
  readonly events: EventBoard;
  readonly spend: SpendSaver;
  readonly stats: Stats;
  readonly threads: IoThreads;
  readonly webhooks: Pick<Webhooks, 'reportEffect' | 'reportExceeded'>;
};

/**
 * Carries out what the governor decided. Audit entries and signals are left to the batch: they come once it is
 * recorded.
 */
export class EffectRunner {
  readonly #options: EffectRunnerOptions;
  /** Events since the start, for the metrics. */
  readonly tally = {
    violations: 0,
    budgetExceeded: 0,
    budgetAlerts: { 80: 0, 100: 0 },
    limitAlerts: { 80: 0, 100: 0 },
  };

  constructor(options: EffectRunnerOptions) {
    this.#options = options;
  }

  /** These were not recorded, so they do not hold anywhere. */
  withdraw(signals: Batch['signals']): void {
    for (const { agent, opId } of signals) this.#options.controls?.forget(agent, opId);
  }

  /**
   * Returns a promise when the answer has to wait for a store. Events are published at once; a change that is rolled
   * back is published again.
   */
  run(effects: readonly Effect[], batch: Batch): Promise<SavedAt> | undefined {
    const nowMs = batch.appliedAtMs;
    const { agents, events, onApproval, spend, states, stats, threads, webhooks } = this.#options;
    let durable: Promise<SavedAt> | undefined;
    for (const effect of effects) {
      switch (effect.kind) {
        case 'audit':
          batch.addEntry(effect.draft);
          if (effect.draft.eventType !== 'BudgetLimitExceeded') break;
          this.tally.budgetExceeded += 1;
          durable = reported(webhooks.reportExceeded(effect.draft), batch, durable);
          break;
        case 'signal':
          if (this.#options.controls === undefined) batch.addSignal(effect);
          else {
            const sequence = this.#options.controls.nextSequence(nowMs);
            batch.addSignal({ ...effect, sequence });
            // It holds here, and its agent hears of it, before all others act by it.
            batch.confirmLater(this.#options.controls.save(effect, sequence, nowMs));
          }
          break;
        case 'violation':
          this.tally.violations += 1;
          durable = reported(webhooks.reportEffect(effect), batch, durable);
          break;
        case 'budget-alert':
          this.tally.budgetAlerts[effect.alert.percent] += 1;
          durable = reported(webhooks.reportEffect(effect), batch, durable);
          break;
        case 'limit-alert':
          this.tally.limitAlerts[effect.alert.percent] += 1;
          break;
        case 'spend-recorded':
          if (effect.spent !== undefined) stats.countSpend(effect.spent.agent, effect.spent.microUsd, nowMs);
          durable = both(durable, spend.save());
          break;
        case 'agent-saved':
          durable = both(durable, agents.save(effect.registration, effect.rotated));
          if (effect.rotated) threads.broadcast({ type: 'agent-revoked', agent: effect.key });
          break;
        case 'agent-removed':
          durable = both(durable, agents.remove(effect.key));
          threads.broadcast({ type: 'agent-revoked', agent: effect.key });
          break;
        case 'state-saved':
          durable = both(durable, states.save(effect.table, effect.id, effect.row));
          break;
        case 'state-removed':
          durable = both(durable, states.remove(effect.table, effect.id));
          break;
        case 'approval-changed':
          onApproval(effect.approval);
          durable = reported(webhooks.reportEffect(effect), batch, durable);
          break;
        case 'halt-changed':
          durable = reported(webhooks.reportEffect(effect), batch, durable);
          break;
        default:
      }
      events.publishEffect(effect, nowMs);
    }
    return durable;
  }
}

/** The answer waits until the report is saved, too: then no crash can lose it. */
function reported(
  report: Report | undefined,
  batch: Batch,
  durable: Promise<SavedAt> | undefined,
): Promise<SavedAt> | undefined {
  if (report === undefined) return durable;
  batch.addReport(report);
  return both(
    durable,
    report.saved.then(() => undefined),
  );
}

/** Writes of one turn share a commit, so waiting for both costs no more than for one. Each names those it waits for. */
async function both(one: Promise<SavedAt> | undefined, other: Promise<SavedAt>): Promise<SavedAt> {
  const [first, second] = await Promise.all([one, other]);
  return first === undefined || second === undefined ? (first ?? second) : [...new Set([...first, ...second])];
}
