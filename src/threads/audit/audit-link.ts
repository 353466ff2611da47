import type { MessagePort } from 'node:worker_threads';
import type { ChainHead } from '../../audit-log/line.ts';
import type { AuditDraft } from '../../core/audit/audit.ts';
import { encodeDraft } from '../../core/audit/audit-line.ts';
import { assertNever, fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { AuditLog, Clock } from '../../ports/ports.ts';
import { encodeToAudit } from '../codec.ts';
import { type AuditToMain, type IoId, MAIN, type MainToAudit } from '../protocol.ts';

/** Entries that are written together, or not at all. */
export type Entries = {
  /** Each a body of `audit-line.ts`. */
  readonly bodies: readonly string[];
  /** What goes on to the I/O thread `io` once they are written. */
  readonly answers?: { readonly io: IoId; readonly replies: Uint8Array } | undefined;
  /** How much of them is from callers that are not identified. */
  readonly strangerBytes?: number;
  /** Somebody waits to hear what became of them; otherwise the listener may be called late. */
  readonly isAwaited: boolean;
};

/** Hears what became of a batch. */
export type BatchListener = {
  /** Whether its entries are in the log. */
  written(isWritten: boolean): void;
  /** The entries are written, but the audit thread died before it sent the answers. */
  unreleased?(): void;
  /** The entries are written, the first with this id: for answers that wait in this thread. */
  readonly released?: ((firstId: number) => void) | undefined;
};

/** The log has stopped taking entries, or takes them again. `entriesLost` counts from the start of the gateway. */
export type Trouble =
  | { readonly isWritable: false; readonly reason: string }
  | { readonly isWritable: true; readonly entriesLost: number };

/** Where the log is written: the audit thread, or this one. */
export type AuditOutlet = { send(message: MainToAudit): void };

export const toAuditThread = (port: Pick<MessagePort, 'postMessage'>): AuditOutlet => ({
  send: (message) => {
    const bytes = encodeToAudit(message);
    port.postMessage(bytes, [bytes.buffer]);
  },
});

type Waiting = { readonly batch: number; readonly count: number; readonly listener: BatchListener };

/** The number of the last batch written, and of the last one whose answers are on their way. */
export const WRITTEN = 0;
export const RELEASED = 1;
/** 1 while the share of the log that is for callers that are not identified is used up. */
export const SHARE_FULL = 2;
export const COUNTERS_BYTES = 3 * Int32Array.BYTES_PER_ELEMENT;

/** With this many waiting batches, the shared counter is read to find out which are written. */
const LOOK_EVERY_BATCHES = 64;

/**
 * The main thread's link to the audit thread: what was handed over, and what became of it. Batches are written in
 * order, so the number of the last one written, in shared memory, usually says all there is to know: a message per
 * batch would wake this thread as often as the requests do. A message is sent only for a batch that somebody waits for.
 *
 * When a write fails, everything handed over after it fails too, as it may build on what failed: the audit thread
 * writes nothing more until it is told to resume. So what is not written is rolled back as a whole, the newest first.
 */
export class AuditLink implements AuditLog {
  readonly #clock: Clock;
  readonly #onTrouble: (trouble: Trouble) => void;
  readonly #onFailure: 'deny' | 'allow';
  /** Oldest first. */
  #batches: Waiting[] = [];
  /** Written batches whose answers are not known to be on their way. */
  #unreleased: Waiting[] = [];
  /** By number, written batches whose answers wait in this thread for the ids of their entries. */
  readonly #held = new Map<number, BatchListener>();
  #outlet: AuditOutlet | undefined;
  readonly #counters = new Int32Array(new SharedArrayBuffer(COUNTERS_BYTES));
  #lastBatch = 0;
  #entriesInFlight = 0;
  #entriesLost = 0;
  #entriesTotal = 0;
  #failuresTotal = 0;
  #isWritable = true;
  #head: ChainHead | undefined;

  /** With `allow` nothing is rolled back, so that entries are tried even while the log is not writable. */
  constructor(clock: Clock, onFailure: 'deny' | 'allow', onTrouble: (trouble: Trouble) => void) {
    this.#clock = clock;
    this.#onFailure = onFailure;
    this.#onTrouble = onTrouble;
  }

  /** False from the first failed write until the log takes entries again. */
  get isWritable(): boolean {
    return this.#isWritable;
  }

  /** The last entry as of a second ago, where several gateways act as one; undefined: there is none, or nobody asks. */
  get head(): ChainHead | undefined {
    return this.#head;
  }

  /** Whether callers that are not identified have had their share of the log. */
  get isShareFull(): boolean {
    return Atomics.load(this.#counters, SHARE_FULL) === 1;
  }

  /** Entries handed over and not yet known to be written. */
  get entriesInFlight(): number {
    this.catchUp();
    return this.#entriesInFlight;
  }

  /** Entries handed over since the start, and batches of them that failed. */
  get entriesTotal(): number {
    return this.#entriesTotal;
  }
  get failuresTotal(): number {
    return this.#failuresTotal;
  }

  /** Entries that were handed over and are not in the log, or may not be (docs/spec.md, Audit). */
  get entriesLost(): number {
    return this.#entriesLost;
  }

  /** The counters of the audit thread, kept across its restarts: see WRITTEN and RELEASED. */
  get counters(): SharedArrayBuffer {
    return this.#counters.buffer;
  }

  /** Connects what writes the log: the first, or the successor of an audit thread that crashed. */
  connect(outlet: AuditOutlet): void {
    this.#outlet = outlet;
    this.#isWritable = true;
  }

  /** Call it when the thread is gone. What it had not counted as written counts as lost. */
  disconnect(): void {
    this.#outlet = undefined;
    this.#isWritable = false;
    this.#dropAll();
    for (const waiting of this.#stillUnreleased()) waiting.listener.unreleased?.();
    this.#unreleased = [];
    for (const listener of this.#held.values()) listener.unreleased?.();
    this.#held.clear();
  }

  /** Hands entries over to the audit thread. */
  append({ bodies, answers, strangerBytes = 0, isAwaited }: Entries, listener: BatchListener): void {
    if (this.#outlet === undefined || (!this.#isWritable && this.#onFailure === 'deny'))
      return this.#drop(bodies.length, listener);
    this.#lastBatch = (this.#lastBatch + 1) | 0;
    const batch = this.#lastBatch;
    this.#batches.push({ batch, count: bodies.length, listener });
    this.#entriesInFlight += bodies.length;
    this.#entriesTotal += bodies.length;
    if (this.#batches.length % LOOK_EVERY_BATCHES === 0) this.catchUp();
    this.#outlet.send({
      type: 'append',
      batch,
      io: listener.released === undefined ? answers?.io : MAIN,
      bodies: bodies.join('\n'),
      count: bodies.length,
      replies: answers?.replies,
      strangerBytes,
      isAwaited,
    });
  }

  record(draft: AuditDraft): Promise<Result<void, Fault>> {
    return new Promise((resolve) => {
      const body = encodeDraft(draft, this.#clock.nowMs());
      const written = (isWritten: boolean): void =>
        resolve(isWritten ? ok(undefined) : fail({ kind: 'audit_unavailable' }));
      const strangerBytes = draft.actor === 'anonymous' ? body.length : 0;
      this.append({ bodies: [body], strangerBytes, isAwaited: true }, { written });
    });
  }

  receive(message: Extract<AuditToMain, { type: 'written' | 'released' | 'not-written' | 'writable' | 'head' }>): void {
    switch (message.type) {
      case 'written':
        return this.catchUp();
      case 'released':
        return this.#release(message.batches);
      case 'head':
        this.#head = message.head;
        return;
      case 'not-written':
        // Reported once, however many batches fail until the log is writable again.
        if (this.#isWritable) this.#onTrouble({ isWritable: false, reason: message.reason });
        this.#isWritable = false;
        this.#dropAll();
        // Exactly one for each failure: a second could arrive after the next failure, and end that before this thread
        // has learned of it.
        return this.#onFailure === 'allow' ? this.#resume() : undefined;
      case 'writable':
        this.#isWritable = true;
        if (this.#onFailure === 'deny') this.#resume();
        return this.#onTrouble({ isWritable: true, entriesLost: this.#entriesLost });
      default:
        return assertNever(message);
    }
  }

  /** Updates what is known to be written. */
  catchUp(): void {
    const last = Atomics.load(this.#counters, WRITTEN);
    let written = 0;
    // The difference is compared, not the numbers themselves, because they wrap around.
    while (written < this.#batches.length && ((last - this.#batches[written]!.batch) | 0) >= 0) written += 1;
    if (written === 0) return;
    const settled = this.#batches.slice(0, written);
    this.#batches = this.#batches.slice(written);
    for (const waiting of settled) {
      this.#entriesInFlight -= waiting.count;
      waiting.listener.written(true);
    }
    for (const waiting of settled) {
      if (waiting.listener.released === undefined) this.#unreleased.push(waiting);
      else this.#held.set(waiting.batch, waiting.listener);
    }
    this.#unreleased = this.#stillUnreleased();
  }

  #release(batches: readonly number[]): void {
    this.catchUp();
    for (let at = 0; at < batches.length; at += 2) {
      const listener = this.#held.get(batches[at]!);
      this.#held.delete(batches[at]!);
      listener?.released?.(batches[at + 1]!);
    }
  }

  #stillUnreleased(): Waiting[] {
    const released = Atomics.load(this.#counters, RELEASED);
    return this.#unreleased.filter(({ batch }) => ((batch - released) | 0) > 0);
  }

  /**
   * What is not written yet never will be. The newest is rolled back first, because each may build on those before it.
   */
  #dropAll(): void {
    this.catchUp();
    const lost = this.#batches;
    this.#batches = [];
    this.#entriesInFlight = 0;
    for (const { count, listener } of this.#onFailure === 'deny' ? lost.toReversed() : lost)
      this.#drop(count, listener);
  }

  #drop(count: number, listener: BatchListener): void {
    this.#entriesLost += count;
    this.#failuresTotal += 1;
    listener.written(false);
  }

  /** Sent before the next entries: ports keep the order. */
  #resume(): void {
    this.#outlet?.send({ type: 'resume' });
  }
}
