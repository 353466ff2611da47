import { onTestFinished } from 'vitest';
import type { LogDecisions } from '../../src/cluster/decisions.ts';
import type { Command } from '../../src/core/commands.ts';
import type { Governor } from '../../src/core/governor.ts';
import { Stats } from '../../src/core/stats/stats.ts';
import { RateLimiter } from '../../src/fairness/rate-limit.ts';
import type { AgentStore, BudgetStore } from '../../src/ports/ports.ts';
import { FAILURES, WRITTEN } from '../../src/threads/audit/audit-counters.ts';
import { AuditLink, toAuditThread } from '../../src/threads/audit/audit-link.ts';
import { toThread } from '../../src/threads/batcher.ts';
import { decodeToAudit, decodeToIo, encodeToIo } from '../../src/threads/codec.ts';
import { CommandRunner } from '../../src/threads/main/command-runner.ts';
import { IoThreads } from '../../src/threads/main/io-threads.ts';
import { type RecorderStart, startRecorder } from '../../src/threads/main/recording.ts';
import { Switchboard } from '../../src/threads/main/switchboard.ts';
import { UnauthenticatedCallers } from '../../src/threads/main/unauthenticated-callers.ts';
import type { HeldMessage, IoToMain, MainToAudit, MainToIo } from '../../src/threads/protocol.ts';
import type { UseCases } from '../../src/use-cases/use-cases.ts';
import { eventually } from './eventually.ts';
import { openGovernor } from './governor.ts';

type Options = {
  readonly onAuditFailure?: 'deny' | 'allow';
  readonly agents?: Partial<AgentStore>;
  readonly budgets?: Pick<BudgetStore, 'save'>;
  readonly maxUnrecorded?: number;
  readonly nowMs?: () => number;
  readonly checksAMinute?: number;
  readonly strangersAMinute?: number;
  /** Returns the network of the check of this number. */
  readonly networkOf?: (id: number) => string;
  readonly webhooks?: RecorderStart['webhooks'];
  /** Set for a gateway in a cluster. */
  readonly shared?: { readonly governor: Governor; readonly decisions: LogDecisions };
};

/**
 * The main thread's side in this process: what it sends to the I/O thread and to the audit thread is kept, and a test
 * plays their parts.
 */
export function openSwitchboard({
  onAuditFailure = 'deny',
  agents = {},
  budgets = { save: () => Promise.resolve() },
  maxUnrecorded = 100,
  nowMs = () => 1_000,
  checksAMinute,
  strangersAMinute = 0,
  networkOf = () => '192.0.2.1',
  webhooks = { reportEffect: () => undefined, reportExceeded: () => undefined },
  shared,
}: Options = {}) {
  const clock = { nowMs };
  const troubles: object[] = [];
  const defects: unknown[] = [];
  const threads = new IoThreads();
  const audit = new AuditLink(
    clock,
    onAuditFailure,
    (trouble) => troubles.push(trouble),
    (from) => threads.dropHeld(from),
  );
  const batches: Extract<MainToAudit, { type: 'append' }>[] = [];
  /** All messages to the audit thread, in their order. */
  const sentToAudit: MainToAudit[] = [];
  const postMessage = (bytes: Uint8Array): void => {
    const message = decodeToAudit(bytes);
    sentToAudit.push(message);
    if (message.type === 'append') batches.push(message);
  };
  const auditOutlet = toAuditThread({ postMessage }, audit.counters);
  audit.connect(auditOutlet, 0);
  const governor = shared?.governor ?? openGovernor();
  const onError = (error: unknown): void => void defects.push(error);
  const recording = startRecorder({
    threads,
    governor,
    audit,
    agents: { save: () => Promise.resolve(), remove: () => Promise.resolve(), ...agents } as AgentStore,
    budgets: budgets as BudgetStore,
    states: { load: () => [], save: () => Promise.resolve(), remove: () => Promise.resolve() },
    clock,
    webhooks,
    stats: new Stats(0, []),
    onApproval: () => {},
    onAuditFailure,
    onError,
    controls: shared?.decisions.controls,
  });
  const commands = new CommandRunner({
    ...recording,
    threads,
    governor,
    audit,
    onAuditFailure,
    maxUnrecorded,
    clock,
    unauthenticated: new UnauthenticatedCallers({
      perMinute: strangersAMinute,
      checksPerMinute: checksAMinute ?? 0,
      isShareFull: () => audit.isShareFull,
    }),
    checkLimiter: checksAMinute === undefined ? undefined : new RateLimiter(checksAMinute),
    decisions: shared?.decisions,
    onError,
  });
  const switchboard = new Switchboard({
    ...recording,
    threads,
    governor,
    commands,
    useCases: { listPolicies: () => Promise.reject(new Error('a defect')) } as unknown as UseCases,
    onError,
  });
  const sent: MainToIo[] = [];
  const counters = new Int32Array(audit.counters);
  threads.connect(0, toThread({ postMessage: (bytes) => void sent.push(...decodeToIo(bytes)) }, encodeToIo));
  onTestFinished(() => switchboard.disconnect(0));
  let lastId = 0;
  return {
    audit,
    governor,
    switchboard,
    threads,
    recorder: recording.recorder,
    batches,
    sentToAudit,
    sent,
    troubles,
    defects,
    auditOutlet,
    ask: (...commands: Command[]): number[] => {
      const ids = commands.map(() => (lastId += 1));
      switchboard.receive(
        0,
        commands.map((command, index) => ({ type: 'command', id: ids[index]!, command })),
      );
      const located = sent.splice(0).flatMap((message): IoToMain[] => {
        if (message.type === 'locate') return [{ type: 'located', id: message.id, network: networkOf(message.id) }];
        sent.push(message);
        return [];
      });
      if (located.length > 0) switchboard.receive(0, located);
      return ids;
    },
    replyTo: (id: number) =>
      eventually(() => {
        const reply = sent.find((message) => message.type === 'command-reply' && message.id === id);
        if (reply === undefined) throw new Error(`request ${id} has no answer`);
        return (reply as Extract<MainToIo, { type: 'command-reply' }>).reply;
      }),
    /** The answers that wait in the I/O thread for their batches. */
    held: () => sent.filter((message): message is HeldMessage => message.type === 'held'),
    write: (batch: number) => {
      Atomics.store(counters, WRITTEN, batch);
      Atomics.notify(counters, WRITTEN);
    },
    /** A write failed, and the main thread has not heard of it. */
    fail: () => void Atomics.add(counters, FAILURES, 1),
    /** A write failed: of what is on its way, nothing that is not written yet will be. */
    refuse: () => {
      Atomics.add(counters, FAILURES, 1);
      audit.receive({ type: 'not-written', reason: 'ENOSPC' });
    },
  };
}
