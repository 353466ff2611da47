import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { WitnessStatement } from '../core/audit/witness.ts';
import { type Backoff, backoffMs } from '../core/base/backoff.ts';
import { assertNever } from '../core/base/result.ts';
import type { Clock } from '../ports/ports.ts';
import type { TlsIdentity } from '../ports/tls.ts';
import { within } from '../system/clock.ts';
import { startThread } from '../system/thread.ts';
import { type AuditLink, toAuditThread } from './audit/audit-link.ts';
import { type AuditHere, type AuditThreadOptions, openAuditHere, type RecordingOptions } from './audit/audit-thread.ts';
import { toThread } from './batcher.ts';
import { decode, decodeToMain, encodeToAudit, encodeToIo } from './codec.ts';
import { isOfDoors, type LocalDoors, openLocalDoors } from './local-doors.ts';
import type { IoThreads } from './main/io-threads.ts';
import type { Switchboard } from './main/switchboard.ts';
import type { AuditToMain, IoId, IoNotice, IoStart, Ports } from './protocol.ts';

type Thread = { readonly performance: Pick<typeof performance, 'eventLoopUtilization'> };

/**
 * How long the event loops of threads have been busy, by name. A thread with the name of one that died adds to its
 * time.
 */
export class BusyTime {
  readonly #known = new Map<string, { readonly thread: Thread; readonly ownMs: number; readonly beforeMs: number }>();

  /** Never falls. When another thread has the name, what its predecessor did after the last call is left out. */
  readMs(name: string, thread: Thread): number {
    const known = this.#known.get(name);
    const readMs = thread.performance.eventLoopUtilization().active;
    const isSame = known?.thread === thread;
    const ownMs = isSame ? Math.max(readMs, known.ownMs) : readMs; // of one that has just died, nothing can be read
    const beforeMs = known === undefined ? 0 : known.beforeMs + (isSame ? 0 : known.ownMs);
    this.#known.set(name, { thread, ownMs, beforeMs });
    return beforeMs + ownMs;
  }
}

export type SupervisorOptions = {
  readonly threads: IoThreads;
  readonly audit: AuditLink;
  readonly clock: Clock;
  /** 0: the doors are in the main thread. */
  readonly ioThreads: number;
  /** Plain data for the threads' entries. */
  readonly ioData: unknown;
  /** The TLS identity for doors that open now. Undefined: without TLS. */
  readonly tls?: (() => TlsIdentity) | undefined;
  /** Port 0 takes a free one; after the first start both are kept. */
  readonly ports: Ports;
  readonly auditData: RecordingOptions;
  /** Gets what witnesses are to keep of the audit log. */
  readonly onStatement: (statement: WitnessStatement) => void;
  readonly note: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
};

export type Listening = Extract<IoNotice, { type: 'listening' }>;
type Opened = Extract<AuditToMain, { type: 'opened' }>;
type IoThread = { readonly worker: Worker; readonly name: string; isDrained: boolean };
/** A place of an I/O thread, from 0. The successor of a thread that died gets the same place. */
type Place = number;

/** A thread that dies soon after its start is started again only after a wait, in milliseconds. */
const RESTART: Backoff = { firstMs: 100, longestMs: 10_000 };
/** A failure this long ago no longer adds to the delay. */
const STABLE_AFTER_MS = 30_000;
/**
 * Added to the grace period, because a busy thread receives the order to drain late and reports late that it has
 * drained.
 */
const DRAIN_LATE_MS = 2_000;

/** Starts the audit thread and the I/O threads, starts them again when one dies, and ends them in order. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #io = new Map<IoId, IoThread>();
  #auditData: RecordingOptions;
  #ports: Ports;
  /** Doors in the main thread, if there are no I/O threads. */
  #doors: LocalDoors | undefined;
  #areDoorsDrained = false;
  #onUncaught = (error: unknown): void => {
    throw error;
  };
  #lastIo = -1;
  #auditWorker: Worker | undefined;
  /** The audit thread while it has not opened the log yet. */
  #startingAudit: Worker | undefined;
  /** The log, where the main thread writes it. */
  #auditHere: AuditHere | undefined;
  #onAuditClosed: (() => void) | undefined;
  #onDrained: (() => void) | undefined;
  /** Aborted when the shutdown begins. */
  readonly #stopping = new AbortController();
  #recentFailures = 0;
  #lastFailureMs = 0;
  #restarts = 0;
  #doorDefects = 0;
  readonly #busyTime = new BusyTime();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#auditData = options.auditData;
    this.#ports = options.ports;
    setMaxListeners(0, this.#stopping.signal); // each thread that waits to be started again is one
  }

  /** True once the gateway accepts no more requests. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Threads started in place of ones that died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Defects met while a request, call or stream was served, each of which ended no more than that. */
  get doorDefects(): number {
    return this.#doorDefects;
  }

  /** How long the event loop of each thread has been busy, including that of its predecessors. */
  busyMs(): Readonly<Record<string, number>> {
    const threads = [
      ...this.#io.values(),
      ...(this.#auditWorker === undefined ? [] : [{ name: 'audit', worker: this.#auditWorker }]),
    ];
    return {
      main: performance.eventLoopUtilization().active,
      ...Object.fromEntries(threads.map(({ worker, name }) => [name, this.#busyTime.readMs(name, worker)])),
    };
  }

  /** The HTTP port; before the first I/O thread listens, the requested one: 0 leaves it to the system. */
  get httpPort(): number {
    return this.#ports.httpPort;
  }

  /**
   * Rejects with the reason when the log cannot be opened. `gateway`: the name of this one, where several act as one.
   */
  async startAudit(gateway?: string): Promise<Opened> {
    this.#auditData = { ...this.#options.auditData, gateway };
    return this.#startAudit();
  }

  async #startAudit(): Promise<Opened> {
    const { ioThreads, auditData } = this.#options;
    // To wait for the disk at every write would stop the main thread.
    return ioThreads === 0 && auditData.fsync === 'never' ? this.#openAuditHere() : this.#startAuditThread();
  }

  #openAuditHere(): Opened {
    const { audit } = this.#options;
    const here = openAuditHere(
      this.#auditData,
      (message) => this.#receiveOfAudit(message),
      (error) => {
        this.#auditHere = undefined;
        audit.disconnect();
        here.abandon();
        const failure = error instanceof Error ? error : new Error(String(error));
        void this.#restart('the writing of the audit log', failure, () => this.#startAudit());
      },
    );
    this.#auditHere = here;
    audit.connect(here, here.headId);
    return { type: 'opened', headId: here.headId, notes: here.notes };
  }

  #receiveOfAudit(message: Exclude<AuditToMain, { type: 'opened' }>): void {
    if (message.type === 'closed') return this.#onAuditClosed?.();
    if (message.type === 'note') return this.#options.note(message.level, message.message);
    if (message.type === 'statement') return this.#options.onStatement(message.statement);
    this.#options.audit.receive(message);
  }

  #startAuditThread(): Promise<Opened> {
    const { audit } = this.#options;
    return new Promise((resolve, reject) => {
      const workerData: AuditThreadOptions = { ...this.#auditData, counters: audit.counters };
      const receive = (bytes: Uint8Array): void => {
        const message = decode(bytes) as AuditToMain;
        if (message.type !== 'opened') return this.#receiveOfAudit(message);
        this.#startingAudit = undefined;
        this.#auditWorker = worker;
        audit.connect(toAuditThread(worker, audit.counters), message.headId);
        resolve(message);
      };
      const worker = startThread({ entry: 'audit', workerData }, receive, (ended) => {
        const failure = ended.failure ?? ended;
        reject(failure);
        if (this.#startingAudit === worker) this.#startingAudit = undefined;
        if (this.#auditWorker !== worker) return;
        this.#auditWorker = undefined;
        this.#onAuditClosed?.();
        audit.disconnect();
        void this.#restart('the audit thread', failure, () => this.#startAudit());
      });
      this.#startingAudit = worker;
    });
  }

  /** Starts one thread, learns its ports, and starts the others on the same ones. */
  async startIo(switchboard: Switchboard, httpPort: number): Promise<Listening> {
    this.#ports = { ...this.#ports, httpPort };
    if (this.#options.ioThreads === 0) return this.#startDoorsHere(switchboard);
    const first = await this.#startIoThread(0, switchboard);
    this.#ports = { httpPort: first.httpPort, grpcPort: first.grpcPort };
    await Promise.all(
      Array.from({ length: this.#options.ioThreads - 1 }, (_, at) => this.#startIoThread(at + 1, switchboard)),
    );
    return first;
  }

  /**
   * Takes no more requests, waits at most `graceMs` for those in flight, then ends the I/O threads that have drained.
   */
  async drainIo(graceMs: number): Promise<void> {
    this.#stopping.abort();
    const drained = new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
    this.#options.threads.broadcast({ type: 'drain', graceMs });
    if (this.#io.size > 0 || this.#doors !== undefined) await within(graceMs + DRAIN_LATE_MS, drained);
    await this.#terminate([...this.#io.values()].filter(({ isDrained }) => isDrained));
  }

  /**
   * Ends the threads that have not drained, too. Call it last: Node.js aborts the process when their sockets are still
   * open.
   */
  async endIo(): Promise<void> {
    this.#doors?.close();
    process.off('uncaughtException', this.#onUncaught);
    await this.#terminate([...this.#io.values()]);
  }

  /** Writes what is on its way, and closes the log. */
  async closeAudit(): Promise<void> {
    this.#stopping.abort();
    await this.#startingAudit?.terminate(); // it was given nothing to write
    if (this.#auditHere !== undefined) {
      this.#auditHere.send({ type: 'close' });
      this.#auditHere = undefined;
      // Later requests are refused, as behind a thread that has ended: a sign-in would wait forever, and with it the
      // end of its transaction.
      this.#options.audit.disconnect();
    }
    const worker = this.#auditWorker;
    if (worker === undefined) return;
    const closed = new Promise<void>((resolve) => {
      this.#onAuditClosed = resolve;
    });
    worker.postMessage(encodeToAudit({ type: 'close' }));
    await closed;
    await worker.terminate();
  }

  /**
   * Opens the doors in the main thread. An uncaught exception, which would end an I/O thread, closes them with all
   * their connections, and they open anew; the rest of the gateway goes on. An exception from elsewhere ends the
   * process, as it does with I/O threads.
   */
  async #startDoorsHere(switchboard: Switchboard): Promise<Listening> {
    process.off('uncaughtException', this.#onUncaught);
    this.#onUncaught = (error) => {
      const doors = this.#doors;
      this.#doors = undefined;
      doors?.close();
      if (!isOfDoors(error)) throw error;
      const failure = error instanceof Error ? error : new Error(String(error));
      this.#options.note('error', 'a door failed at an event handler', { error: failure.stack });
      if (this.isStopping) return this.#checkDrained();
      if (doors !== undefined) void this.#restart('the doors', failure, () => this.#startDoorsHere(switchboard));
    };
    process.on('uncaughtException', this.#onUncaught);
    return new Promise((resolve, reject) => {
      openLocalDoors({
        io: (this.#lastIo += 1),
        threads: this.#options.threads,
        switchboard,
        start: {
          place: 0,
          data: this.#options.ioData,
          ports: this.#ports,
          tls: this.#options.tls?.(),
          threads: 1,
          nowMs: this.#options.clock.nowMs(),
        },
        onNotice: (notice) => {
          if (notice.type === 'listening') {
            this.#ports = { httpPort: notice.httpPort, grpcPort: notice.grpcPort };
            resolve(notice);
          } else if (notice.type === 'drained') {
            this.#areDoorsDrained = true;
            this.#checkDrained();
          } else this.#noteOf(notice, 'a door');
        },
      }).then((doors) => {
        this.#doors = doors;
      }, reject);
    });
  }

  #noteOf(notice: Extract<IoNotice, { type: 'cut' | 'crowded' | 'error' | 'cannot-listen' }>, who: string): void {
    const { note } = this.#options;
    if (notice.type === 'error') this.#doorDefects += 1;
    if (notice.type === 'cut') note('warn', `the answer to ${notice.doing} was cut off`, { reason: notice.reason });
    else if (notice.type === 'crowded')
      note('warn', `${who} closes idle gRPC connections, so that others find a place`, {
        remedy: 'find out who opens so many, or raise SVC_MAX_GRPC_CONNECTIONS',
      });
    else if (notice.type === 'error') note('error', `${who} failed at ${notice.doing}`, { error: notice.message });
    else note('error', `${who} cannot listen`, { reason: notice.reason });
  }

  #startIoThread(place: Place, switchboard: Switchboard): Promise<Listening> {
    const io = (this.#lastIo += 1);
    const { threads, audit, clock, ioData, ioThreads } = this.#options;
    const start: IoStart = {
      place,
      data: ioData,
      auditCounters: audit.counters,
      ports: this.#ports,
      tls: this.#options.tls?.(),
      threads: ioThreads,
      nowMs: clock.nowMs(),
    };
    return new Promise((resolve, reject) => {
      const name = `io-${place}`;
      let failure: Error | undefined;
      let isListening = false;
      const receive = (message: Uint8Array | IoNotice): void => {
        if (message instanceof Uint8Array) return switchboard.receive(io, decodeToMain(message));
        switch (message.type) {
          case 'listening':
            isListening = true;
            return resolve(message);
          case 'cannot-listen':
            failure = new Error(message.reason);
            return;
          case 'drained':
            thread.isDrained = true;
            return this.#checkDrained();
          case 'cut':
          case 'crowded':
          case 'error':
            return this.#noteOf(message, 'an I/O thread');
          default:
            return assertNever(message);
        }
      };
      const worker = startThread({ entry: 'io', name, workerData: start }, receive, (ended) => {
        failure ??= ended.failure ?? ended;
        this.#io.delete(io);
        switchboard.disconnect(io);
        reject(failure);
        if (this.isStopping) return this.#checkDrained();
        if (isListening)
          void this.#restart(`I/O thread ${place}`, failure, () => this.#startIoThread(place, switchboard));
      });
      const thread: IoThread = { worker, name, isDrained: false };
      this.#io.set(io, thread);
      threads.connect(io, toThread(worker, encodeToIo));
    });
  }

  async #restart(what: string, failure: Error, start: () => Promise<unknown>): Promise<void> {
    if (this.isStopping) return;
    const nowMs = performance.now();
    if (nowMs - this.#lastFailureMs > STABLE_AFTER_MS) this.#recentFailures = 0;
    this.#lastFailureMs = nowMs;
    this.#recentFailures += 1;
    const delayMs = backoffMs(this.#recentFailures, RESTART);
    this.#restarts += 1;
    this.#options.note('error', `${what} died; restarting it`, { error: failure.message, delayMs });
    // rejects when the shutdown begins
    await sleep(delayMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    if (this.isStopping) return;
    try {
      await start();
      this.#options.note('warn', `${what} is running again`);
    } catch (error) {
      await this.#restart(what, error instanceof Error ? error : new Error(String(error)), start);
    }
  }

  async #terminate(threads: readonly IoThread[]): Promise<void> {
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }

  #checkDrained(): void {
    const isDrained = this.#doors === undefined || this.#areDoorsDrained;
    if (isDrained && [...this.#io.values()].every((thread) => thread.isDrained)) this.#onDrained?.();
  }
}
