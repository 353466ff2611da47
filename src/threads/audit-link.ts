import type { MessagePort } from 'node:worker_threads';
import { encodeDraft } from '../core/audit-line.ts';
import type { AuditDraft } from '../core/audit.ts';
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import type { AuditLog, Clock } from '../gateway/ports.ts';
import { encode } from './codec.ts';
import type { AuditToMain, IoIndex, MainToAudit } from './protocol.ts';

/** Told, per batch, whether its entries are in the log. */
export type Written = (isWritten: boolean) => void;

type Port = Pick<MessagePort, 'postMessage'>;

/** The main thread's end of the audit thread: what is handed over, and what has become of it. */
export class AuditLink implements AuditLog {
  readonly #clock: Clock;
  readonly #onTrouble: (reason: string) => void;
  readonly #batches = new Map<number, { readonly count: number; readonly written: Written }>();
  #port: Port | undefined;
  #lastBatch = 0;
  #entriesInFlight = 0;
  #isWritable = true;

  constructor(clock: Clock, onTrouble: (reason: string) => void) {
    this.#clock = clock;
    this.#onTrouble = onTrouble;
  }

  /** False from the first failed write until the log takes entries again. */
  get isWritable(): boolean { return this.#isWritable; }

  get entriesInFlight(): number { return this.#entriesInFlight; }

  /** Connects the thread that writes, the first one or one started in place of a crashed one. */
  connect(port: Port): void {
    this.#port = port;
    this.#isWritable = true;
  }

  /** The thread is gone: nobody will ever tell what became of these. */
  disconnect(): void {
    this.#port = undefined;
    this.#isWritable = false;
    const lost = [...this.#batches.keys()];
    for (const batch of lost) this.#settle(batch, false);
  }

  /** Hands over entries; `replies` go on to the I/O thread once the entries are written. */
  append(io: IoIndex | undefined, bodies: readonly string[], replies: Uint8Array | undefined, written: Written): void {
    if (this.#port === undefined) return written(false);
    this.#lastBatch += 1;
    const batch = this.#lastBatch;
    this.#batches.set(batch, { count: bodies.length, written });
    this.#entriesInFlight += bodies.length;
    const message: MainToAudit = { type: 'append', batch, io, bodies: bodies.join('\n'), count: bodies.length, replies };
    const bytes = encode(message);
    this.#port.postMessage(bytes, [bytes.buffer]);
  }

  record(draft: AuditDraft): Promise<Result<void, Fault>> {
    return new Promise((resolve) => {
      const body = encodeDraft(draft, this.#clock.nowMs());
      this.append(undefined, [body], undefined, (isWritten) => resolve(isWritten ? ok(undefined) : fail({ kind: 'audit_unavailable' })));
    });
  }

  receive(message: AuditToMain): void {
    switch (message.type) {
      case 'written': return this.#settle(message.batch, true);
      case 'not-written':
        this.#isWritable = false;
        this.#onTrouble(message.reason);
        return this.#settle(message.batch, false);
      case 'writable':
        this.#isWritable = true;
        return;
      default:
    }
  }

  #settle(batch: number, isWritten: boolean): void {
    const waiting = this.#batches.get(batch);
    if (waiting === undefined) return;
    this.#batches.delete(batch);
    this.#entriesInFlight -= waiting.count;
    waiting.written(isWritten);
  }
}
