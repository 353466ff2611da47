/** The means by which decisions of the main thread are recorded, carried out and answered. */

import type { Approval } from '../../core/approvals/approval.ts';
import type { Governor } from '../../core/governor.ts';
import type { Stats } from '../../core/stats/stats.ts';
import type { AgentStore, BudgetStore, Clock, DecisionStore } from '../../ports/ports.ts';
import type { ControlSharing } from '../../ports/sharing.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import type { AuditLink } from '../audit/audit-link.ts';
import { ControlStreams } from './control-streams.ts';
import { EffectRunner } from './effect-runner.ts';
import { EventBoard } from './event-board.ts';
import type { IoThreads } from './io-threads.ts';
import { Recorder } from './recorder.ts';
import { SpendSaver } from './spend-saver.ts';

export type RecorderStart = {
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly threads: IoThreads;
  readonly agents: AgentStore;
  readonly budgets: BudgetStore;
  readonly states: DecisionStore;
  readonly clock: Clock;
  readonly stats: Stats;
  readonly onApproval: (approval: Approval) => void;
  readonly webhooks: Pick<Webhooks, 'reportEffect' | 'reportExceeded'>;
  readonly onAuditFailure: 'deny' | 'allow';
  readonly onError: (error: unknown, doing: string) => void;
  readonly controls?: ControlSharing | undefined;
};

export type Recording = {
  readonly controlStreams: ControlStreams;
  readonly events: EventBoard;
  readonly spend: SpendSaver;
  readonly effectRunner: EffectRunner;
  readonly recorder: Recorder;
};

export function startRecorder({
  agents,
  budgets,
  states,
  controls,
  onApproval,
  webhooks,
  ...start
}: RecorderStart): Recording {
  const { threads } = start;
  const controlStreams = new ControlStreams();
  const events = new EventBoard((io, event) => threads.notify(io, event), start.clock.nowMs());
  const spend = new SpendSaver(start.governor.budgets, start.governor.limits, budgets);
  const effectRunner = new EffectRunner({
    agents,
    states,
    controls,
    onApproval,
    events,
    spend,
    stats: start.stats,
    threads,
    webhooks,
  });
  const recorder = new Recorder({ ...start, controlStreams, effectRunner });
  return { controlStreams, events, spend, effectRunner, recorder };
}
