/**
 * A run of the gateway: the real core, recorder, links and audit writer, with every message between its threads in a
 * queue that moves when the simulation says so. Store, disk, clock and the threads' turns are the simulation's.
 */
import { createHash } from 'node:crypto';
import { type AuditWriter, openAuditWriter } from '../../src/audit-log/writer.ts';
import type { Approval } from '../../src/core/approvals/approval.ts';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import { Governor } from '../../src/core/governor.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import { type LimitRow, withoutLimits } from '../../src/core/limits/rows.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compilePolicies } from '../../src/core/policy/policy.ts';
import { Stats } from '../../src/core/stats/stats.ts';
import type { Clock } from '../../src/ports/ports.ts';
import { AuditLink, toAuditThread } from '../../src/threads/audit/audit-link.ts';
import { AuditRecording, counting } from '../../src/threads/audit/audit-thread.ts';
import { toThread } from '../../src/threads/batcher.ts';
import { decodeToAudit, decodeToIo, decodeToMain, encodeToIo, encodeToMain } from '../../src/threads/codec.ts';
import { HeldAnswers } from '../../src/threads/io/held-answers.ts';
import type { IoReceiver } from '../../src/threads/io/io-channel.ts';
import { IoLink } from '../../src/threads/io/io-link.ts';
import { CommandRunner } from '../../src/threads/main/command-runner.ts';
import { IoThreads } from '../../src/threads/main/io-threads.ts';
import { startRecorder } from '../../src/threads/main/recording.ts';
import { Switchboard } from '../../src/threads/main/switchboard.ts';
import { UnauthenticatedCallers } from '../../src/threads/main/unauthenticated-callers.ts';
import type { AuditToMain, IoId, IoToMain, MainToDoors } from '../../src/threads/protocol.ts';
import { HaltKeeper } from '../../src/use-cases/halts.ts';
import type { UseCases } from '../../src/use-cases/use-cases.ts';
import { HASH_KEY } from '../support/governor.ts';
import type { SimulatedStore } from './store.ts';

/** A day's cap that checks and usage reach now and then. In micro-dollars. */
export const DAILY_CAP = 400;
export const SWEEP_TTL_MS = 60_000;
const MAX_UNRECORDED = 60;

const document = parsePolicyDocument(
  {
    name: 'simulated',
    scope: 'global',
    rules: [
      { id: 'no', actions: ['*'], resources: ['forbidden'], effect: 'deny', reason: 'forbidden' },
      { id: 'ask', actions: ['*'], resources: ['asked'], effect: 'require_approval', reason: 'people decide' },
      { id: 'yes', actions: ['*'], resources: ['*'], effect: 'allow', reason: 'allowed' },
    ],
    budget: { daily_limit_usd: DAILY_CAP / 1e6 },
  },
  'the simulation',
).document!;
const compiled = compilePolicies([document]);
if (!compiled.ok) throw new Error('the policies of the simulation do not compile');
const POLICIES = compiled.value;

/** A defect that the simulation must find. */
export type Mutation = {
  /** Changes a run that has just begun, before it takes anything. */
  readonly main?: (run: GatewayRun) => void;
  readonly writer?: (writer: AuditWriter) => void;
};

export type RunOptions = {
  readonly directory: string;
  readonly clock: Clock;
  readonly store: SimulatedStore;
  readonly onAuditFailure: 'deny' | 'allow';
  /** The doors are in the main thread, where answers wait for their entries. */
  readonly hasDoorsHere: boolean;
  readonly newId: () => string;
  readonly mutation: Mutation;
  readonly onDefect: (error: unknown, doing: string) => void;
};

/** The doors of one I/O thread, and what is on its way to them. */
export type IoThread = {
  readonly io: IoId;
  readonly link: IoLink;
  readonly receiver: IoReceiver;
  readonly toMain: Uint8Array[];
  readonly fromMain: Uint8Array[];
  /** Holds answers; undefined for doors in the main thread. */
  readonly held: HeldAnswers | undefined;
  /** To be called when more is written, or seems to be. */
  readonly looks: (() => void)[];
};

const DOORS = 2;

export class GatewayRun {
  readonly clock: Clock;
  readonly governor: Governor;
  readonly audit: AuditLink;
  readonly commands: CommandRunner;
  readonly halts: HaltKeeper;
  readonly recording: ReturnType<typeof startRecorder>;
  readonly ios: IoThread[] = [];
  readonly toAudit: Uint8Array[] = [];
  readonly auditToMain: Exclude<AuditToMain, { type: 'opened' }>[] = [];
  /** Undefined while the audit thread is dead. */
  writer: AuditWriter | undefined;
  #auditThread: AuditRecording | undefined;
  readonly #threads = new IoThreads();
  readonly #switchboard: Switchboard;
  readonly #options: RunOptions;
  /** They end with the process. */
  readonly #timers = new Set<NodeJS.Timeout>();
  #lastIo = 0;

  constructor(options: RunOptions) {
    const { clock, store, onAuditFailure, mutation, onDefect } = options;
    this.#options = options;
    this.clock = clock;
    this.governor = this.#restoreGovernor();
    this.audit = new AuditLink(
      clock,
      onAuditFailure,
      () => undefined,
      (from) => this.#threads.dropHeld(from),
    );
    const given = {
      threads: this.#threads,
      governor: this.governor,
      audit: this.audit,
      clock,
      onAuditFailure,
      onError: onDefect,
    };
    this.recording = startRecorder({
      ...given,
      agents: store.agents,
      budgets: store.budgets,
      states: store.states,
      stats: new Stats(clock.nowMs(), []),
      onApproval: () => undefined,
      webhooks: { reportEffect: () => undefined, reportExceeded: () => undefined },
    });
    this.commands = new CommandRunner({
      ...given,
      ...this.recording,
      maxUnrecorded: MAX_UNRECORDED,
      unauthenticated: new UnauthenticatedCallers({
        perMinute: 4,
        checksPerMinute: 0,
        isShareFull: () => this.audit.isShareFull,
      }),
    });
    this.halts = new HaltKeeper({
      commands: this.commands,
      newId: options.newId,
      breathe: () => Promise.resolve(),
      stopwatch: { now: () => 0 },
      matchOf: () => ({ agents: 0, nearest: undefined }),
      pause: (ms) =>
        new Promise((resolve) => {
          const timer = setTimeout(() => {
            this.#timers.delete(timer);
            resolve();
          }, ms);
          this.#timers.add(timer);
        }),
      onError: onDefect,
    });
    // Nothing here calls a use case through the doors.
    const useCases = {} as UseCases;
    this.#switchboard = new Switchboard({ ...given, ...this.recording, commands: this.commands, useCases });
    this.startAudit();
    for (let nth = 0; nth < DOORS; nth += 1) this.startIo();
    mutation.main?.(this);
  }

  #restoreGovernor(): Governor {
    const { clock, store, newId } = this.#options;
    const nowMs = clock.nowMs();
    const budgets = new BudgetTracker(POLICIES.budget, nowMs);
    const limitRows: LimitRow[] = [];
    budgets.restore(withoutLimits(store.budgets.load(), limitRows), nowMs);
    const governor = new Governor({
      policies: POLICIES,
      budgets,
      maxOps: 10_000,
      maxOrgOps: 10_000,
      maxAgents: 100,
      maxOrgAgents: 100,
      maxLimitStates: 1_000_000,
      sessionTtlMs: 86_400_000,
      redact: (attributes) => attributes,
      newApprovalId: newId,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      sweepTtlMs: SWEEP_TTL_MS,
      hashKey: HASH_KEY,
    });
    governor.limitsInForce = POLICIES.limits;
    governor.limits.restore(limitRows);
    for (const registration of store.agents.load()) governor.restoreAgent(registration);
    for (const { row } of store.states.load('halts')) governor.restoreHalt(row as Halt);
    for (const { row } of store.states.load('approvals')) governor.restoreApproval(row as Approval);
    return governor;
  }

  startAudit(): void {
    const { directory, mutation } = this.#options;
    const opened = openAuditWriter({ directory, fsync: 'never', nowMs: Date.now, segmentBytes: 64 * 1024 });
    if (!opened.ok) throw new Error(`the log is locked by ${opened.fault.holder}`);
    this.writer = opened.value.writer;
    mutation.writer?.(this.writer);
    this.#auditThread = new AuditRecording(
      this.writer,
      {
        directory,
        fsync: 'never',
        checkpointKeyPath: `${directory}.key`,
        checkpointEveryMs: 2 ** 31 - 1,
        retention: { maxAgeMs: undefined, maxBytes: undefined },
      },
      counting(
        this.audit.counters,
        (message) => void this.auditToMain.push(message as Exclude<AuditToMain, { type: 'opened' }>),
      ),
    );
    this.audit.connect(
      toAuditThread({ postMessage: (bytes: Uint8Array) => void this.toAudit.push(bytes) }, this.audit.counters),
      this.writer.head().id,
    );
  }

  /** Its unread messages are lost with it; those it has sent still arrive. */
  killAudit(): void {
    if (this.#auditThread === undefined) return;
    this.#auditThread.abandon();
    this.#auditThread = undefined;
    this.writer = undefined;
    this.toAudit.length = 0;
    while (this.auditToMain.length > 0) this.mainHearsAudit();
    this.audit.disconnect();
  }

  get hasAudit(): boolean {
    return this.#auditThread !== undefined;
  }

  startIo(): void {
    this.#lastIo += 1;
    const io = this.#lastIo;
    const thread = { io, toMain: [] as Uint8Array[], fromMain: [] as Uint8Array[], looks: [] as (() => void)[] };
    let receiver: IoReceiver | undefined;
    const link = new IoLink(
      {
        outlet: toThread({ postMessage: (bytes: Uint8Array) => void thread.toMain.push(bytes) }, encodeToMain),
        notify: () => undefined,
        deliverTo: (given) => {
          receiver = given;
        },
      },
      { maxPending: 10_000, onMessage: () => undefined },
    );
    const release = (firstId: number, replies: readonly MainToDoors[]): void => receiver!.release(firstId, replies);
    const outlet = toThread({ postMessage: (bytes: Uint8Array) => void thread.fromMain.push(bytes) }, encodeToIo);
    const { hasDoorsHere } = this.#options;
    if (hasDoorsHere) this.#threads.connectDoors(io, outlet, release);
    else this.#threads.connect(io, outlet);
    const held = hasDoorsHere
      ? undefined
      : new HeldAnswers({
          counters: this.audit.counters,
          release,
          onWritten: (_counters, _written, look) => void thread.looks.push(look),
        });
    this.ios.push({ ...thread, link, receiver: receiver!, held });
  }

  killIo(at: number): void {
    const [thread] = this.ios.splice(at, 1);
    this.#switchboard.disconnect(thread!.io);
  }

  /** The main thread's turn. Returns what it took. */
  mainTakes(thread: IoThread, most: number): readonly IoToMain[] {
    const messages = thread.toMain.splice(0, most).flatMap((bytes) => [...decodeToMain(bytes)]);
    if (messages.length > 0) this.#switchboard.receive(thread.io, messages);
    return messages;
  }

  mainHearsAudit(): void {
    const message = this.auditToMain.shift();
    if (message === undefined || message.type === 'closed') return;
    if (message.type !== 'note' && message.type !== 'statement') this.audit.receive(message);
  }

  auditTakes(most: number): void {
    if (this.#auditThread === undefined) return;
    for (const bytes of this.toAudit.splice(0, most)) this.#auditThread.take(decodeToAudit(bytes));
    this.#auditThread.write();
  }

  ioHearsMain(thread: IoThread): void {
    const bytes = thread.fromMain.shift();
    if (bytes === undefined) return;
    const messages = decodeToIo(bytes);
    thread.receiver.receive(thread.held?.take(messages) ?? (messages as readonly MainToDoors[]));
  }

  /** The I/O thread looks at what is written. */
  ioLooks(thread: IoThread): void {
    thread.looks.shift()?.();
  }

  /** kill -9: nothing is finished, and nothing said. */
  crash(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#auditThread?.abandon();
    this.#auditThread = undefined;
  }

  credentialOf(key: string): SecretDigest | undefined {
    return this.governor.agents.get(key as never)?.credential;
  }
}
