import type { MessagePort } from 'node:worker_threads';
import type { ChainHead } from '../../audit-log/line.ts';
import type { AuditDraft } from '../../core/audit/audit.ts';
import { encodeDraft } from '../../core/audit/audit-line.ts';
import type { PeerHead } from '../../core/audit/witness.ts';
import { assertNever, fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { AuditLog, Clock } from '../../ports/ports.ts';
import { encodeToAudit } from '../codec.ts';
import type { AuditToMain, HeldMessage, MainToAudit } from '../protocol.ts';
import { COUNTERS_BYTES, FAILURES, WRITTEN } from './audit-counters.ts';

/** Entries that are written together, or not at all. */
export type Entries = {
  /** Each a body of `audit-line.ts`. */
  readonly bodies: readonly string[];
  /** How much of them is from callers that are not identified. */
  readonly strangerBytes?: number;
  /** Somebody waits to hear what became of them; otherwise the listener may be called late. */
  readonly isAwaited: boolean;
};

/** Hears what became of a batch: one of the two, once. */
export type BatchListener = {
  /** The entries are in the log, the first with this id, and so are those of every batch before. */
  written(firstId: number): void;
  /** They are not, or may not be. */
  lost(): void;
};

/** The position up to which an I/O thread must hold answers until it is written. */
export type Place = Pick<HeldMessage, 'batch' | 'firstId' | 'failures'>;

/** The log has stopped taking entries, or takes them again. `entriesLost` counts from the start of the gateway. */
export type Trouble =
  | { readonly isWritable: false; readonly reason: string }
  | { readonly isWritable: true; readonly entriesLost: number };

/** Writes the log: the audit thread, or this one. */
export type AuditOutlet = {
  send(message: MainToAudit): void;
  /** The last batch that the audit thread has written. Undefined in this thread, which is told of each at once. */
  readonly lastWritten?: () => number;
};

export function toAuditThread(
  port: Pick<MessagePort, 'postMessage'>,
  counters: SharedArrayBuffer,
): Required<AuditOutlet> {
  const counts = new Int32Array(counters);
  return {
    send: (message) => {
      const bytes = encodeToAudit(message);
      port.postMessage(bytes, [bytes.buffer]);
    },
    lastWritten: () => Atomics.load(counts, WRITTEN),
  };
}

type Waiting = {
  readonly batch: number;
  readonly firstId: number;
  readonly count: number;
  readonly listener: BatchListener;
};

/** With this many waiting batches, the audit thread's counter is read to find out which are written. */
const LOOK_EVERY_BATCHES = 64;

/**
 * The main thread's link to the audit log: what was handed over, and what became of it. Batches are written in order,
 * so the number of the last one written says all there is to know. If this thread writes the log, it learns of each at
 * once. An audit thread counts them in shared memory, since a message per batch would wake this thread as often as the
 * requests do, and sends a message only for a batch that somebody waits for. The ids of the entries are counted here,
 * so that answers need not travel through the audit thread to learn theirs.
 *
 * When a write fails, everything handed over after it fails too, as it may build on what failed: the audit thread
 * writes nothing more until it is told to resume. Unwritten batches are therefore rolled back as a whole, the newest
 * first.
 */
export class AuditLink implements AuditLog {
  readonly #clock: Clock;
  readonly #onTrouble: (trouble: Trouble) => void;
  readonly #onFailure: 'deny' | 'allow';
  readonly #onNotRecorded: (from: number) => void;
  /** Oldest first. */
  #batches: Waiting[] = [];
  #outlet: AuditOutlet | undefined;
  /** Counters shared with successive audit threads. */
  readonly #counters = new Int32Array(new SharedArrayBuffer(COUNTERS_BYTES));
  #lastBatch = 0;
  #nextId = 1;
  /** As this thread knows of them: the counter may be ahead. */
  #failures = 0;
  #entriesInFlight = 0;
  #entriesLost = 0;
  #entriesTotal = 0;
  #failuresTotal = 0;
  #isWritable = true;
  #isShareFull = false;
  #head: ChainHead | undefined;

  /**
   * With `allow` nothing is rolled back, so that entries are tried even while the log is not writable. `onNotRecorded`
   * is called before the listeners of what is lost: no batch from that number on is written.
   */
  constructor(
    clock: Clock,
    onFailure: 'deny' | 'allow',
    onTrouble: (trouble: Trouble) => void,
    onNotRecorded: (from: number) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#onFailure = onFailure;
    this.#onTrouble = onTrouble;
    this.#onNotRecorded = onNotRecorded;
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
    return this.#isShareFull;
  }

  /** The id of the last entry that was handed over. */
  get lastId(): number {
    return this.#nextId - 1;
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

  /** Counters as in `audit-counters.ts`, kept across restarts of the audit thread. */
  get counters(): SharedArrayBuffer {
    return this.#counters.buffer;
  }

  /**
   * Connects what writes the log: the first, or the successor of an audit thread that crashed. `headId` is the id of
   * the last entry.
   */
  connect(outlet: AuditOutlet, headId: number): void {
    this.#outlet = outlet;
    this.#isWritable = true;
    this.#nextId = headId + 1;
  }

  /** Call it when the thread is gone. Batches it had not counted as written count as lost. */
  disconnect(): void {
    this.catchUp();
    this.#outlet = undefined;
    this.#isWritable = false;
    this.#isShareFull = false;
    Atomics.add(this.#counters, FAILURES, 1);
    this.#dropAll();
  }

  /** Hands entries over to the audit thread; undefined where they are lost already, as the listener has heard. */
  append({ bodies, strangerBytes = 0, isAwaited }: Entries, listener: BatchListener): Place | undefined {
    if (this.#outlet === undefined || (!this.#isWritable && this.#onFailure === 'deny'))
      return void this.#drop(bodies.length, listener);
    this.#lastBatch = (this.#lastBatch + 1) | 0;
    const place = { batch: this.#lastBatch, firstId: this.#nextId, failures: this.#failures };
    this.#nextId += bodies.length;
    this.#batches.push({ batch: place.batch, firstId: place.firstId, count: bodies.length, listener });
    this.#entriesInFlight += bodies.length;
    this.#entriesTotal += bodies.length;
    if (this.#batches.length % LOOK_EVERY_BATCHES === 0) this.catchUp();
    this.#outlet.send({
      type: 'append',
      batch: place.batch,
      firstId: place.firstId,
      bodies: bodies.join('\n'),
      count: bodies.length,
      strangerBytes,
      isAwaited,
    });
    return place;
  }

  /** Passes on the ends of the other gateways' logs: the next checkpoint states them. */
  sharePeers(heads: readonly PeerHead[]): void {
    this.#outlet?.send({ type: 'peers', heads });
  }

  record(draft: AuditDraft): Promise<Result<void, Fault>> {
    return new Promise((resolve) => {
      const body = encodeDraft(draft, this.#clock.nowMs());
      const strangerBytes = draft.actor === 'anonymous' ? body.length : 0;
      this.append(
        { bodies: [body], strangerBytes, isAwaited: true },
        { written: () => resolve(ok(undefined)), lost: () => resolve(fail({ kind: 'audit_unavailable' })) },
      );
    });
  }

  receive(message: Extract<AuditToMain, { type: 'written' | 'not-written' | 'writable' | 'share' | 'head' }>): void {
    switch (message.type) {
      case 'written':
        return this.#settle(message.batch);
      case 'share':
        this.#isShareFull = message.isFull;
        return;
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

  /** Reads what an audit thread has counted. */
  catchUp(): void {
    if (this.#batches.length === 0) return;
    const last = this.#outlet?.lastWritten?.();
    if (last !== undefined) this.#settle(last);
  }

  /** The batches up to this one are written. */
  #settle(last: number): void {
    let written = 0;
    // The difference is compared, not the numbers themselves, because they wrap around.
    while (written < this.#batches.length && ((last - this.#batches[written]!.batch) | 0) >= 0) {
      this.#entriesInFlight -= this.#batches[written]!.count;
      written += 1;
    }
    if (written === 0) return;
    const settled = this.#batches;
    this.#batches = settled.slice(written);
    for (let at = 0; at < written; at += 1) settled[at]!.listener.written(settled[at]!.firstId);
  }

  /**
   * Drops unwritten batches, which never will be written. The newest is rolled back first, because each may build on
   * those before it.
   */
  #dropAll(): void {
    this.catchUp();
    this.#failures = Atomics.load(this.#counters, FAILURES);
    const lost = this.#batches;
    this.#batches = [];
    this.#nextId = lost[0]?.firstId ?? this.#nextId;
    this.#onNotRecorded(lost[0]?.batch ?? (this.#lastBatch + 1) | 0);
    this.#entriesInFlight = 0;
    for (const { count, listener } of this.#onFailure === 'deny' ? lost.toReversed() : lost)
      this.#drop(count, listener);
  }

  #drop(count: number, listener: BatchListener): void {
    this.#entriesLost += count;
    this.#failuresTotal += 1;
    listener.lost();
  }

  /** Sent before the next entries: ports keep the order. */
  #resume(): void {
    this.#outlet?.send({ type: 'resume' });
  }
}
