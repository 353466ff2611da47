import type { Page } from '../../core/base/page.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { OpView } from '../../core/ops/op-view.ts';
import type { StreamSocket } from '../engine/engine.ts';
import { type Channel, opKeyOf } from './channel.ts';
import { laggedFrame, snapshotFrame } from './frames.ts';

/** The current operations on their way to one reader, a page at a time. */
class Snapshot {
  #rows: Buffer[] = [];
  #next = 0;
  #isAwaited = false;
  #isComplete = false;
  #cursor: string | undefined;

  /** The start of the next page; undefined for the first. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** While a page is on its way, or its rows are not sent, the events that follow it wait. */
  get isHolding(): boolean {
    return this.#isAwaited || this.#next < this.#rows.length;
  }

  /** True when the next page should be asked for. */
  get wantsPage(): boolean {
    return !this.#isComplete && !this.isHolding;
  }

  await(): void {
    this.#isAwaited = true;
  }

  /** `next`: where the page after this one begins; undefined for the last. */
  take(rows: Buffer[], next: string | undefined): void {
    this.#isAwaited = false;
    this.#isComplete = next === undefined;
    this.#cursor = next;
    this.#rows = rows;
    this.#next = 0;
  }

  next(): Buffer | undefined {
    const row = this.#rows[this.#next];
    if (row === undefined) return undefined;
    this.#next += 1;
    if (this.#next === this.#rows.length) {
      this.#rows = [];
      this.#next = 0;
    }
    return row;
  }
}

/** Why the gateway closes a stream. Codes from 4000 are this API's own. */
export const CLOSE = {
  goingAway: { code: 1001, reason: 'the gateway is shutting down' },
  tooManyMessages: { code: 1008, reason: 'this stream does not accept messages' },
  tooLong: { code: 1009, reason: 'this stream does not accept messages' },
  defect: { code: 1011, reason: 'an internal error; connect again' },
  tryAgain: { code: 1013, reason: 'the snapshot could not be read; try again' },
  tooSlow: { code: 4008, reason: 'events were not read in time' },
  credentialEnded: { code: 4401, reason: 'the credential has expired or was revoked' },
} as const;
export type CloseReason = (typeof CLOSE)[keyof typeof CLOSE];

/** A reader with this much unsent is left alone until it has caught up with half of it. */
const MAX_UNSENT_BYTES = 32 * 1024;
/** Sent to one reader before it is the next one's turn. */
const VISIT_BYTES = 32 * 1024;
/** A reader that is this far behind gets only the latest state of each operation. */
const BEHIND_ENTRIES = 1_000;

export class Reader {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  readonly channel: Channel<Reader>;
  readonly snapshot: Snapshot | undefined;
  /** The last entry that it was sent or lost. */
  cursor: number;
  /** When it stopped taking what it is sent, by the clock of `performance`; undefined while it keeps up. */
  blockedSinceMs: number | undefined;
  messages = 0;
  #sink: StreamSocket | undefined;
  #isBehind = false;
  #unreported = 0;
  #dropped = 0;
  #isOver = false;

  constructor({
    principal,
    expiresAtMs,
    channel,
    cursor,
    wantsSnapshot,
  }: { principal: Principal; expiresAtMs: number; channel: Channel<Reader>; cursor: number; wantsSnapshot: boolean }) {
    this.principal = principal;
    this.expiresAtMs = expiresAtMs;
    this.channel = channel;
    this.cursor = cursor;
    this.snapshot = wantsSnapshot ? new Snapshot() : undefined;
  }

  /** Events that it has missed for good. */
  get dropped(): number {
    return this.#dropped;
  }
  get isOver(): boolean {
    return this.#isOver;
  }

  open(sink: StreamSocket): void {
    this.#sink = sink;
  }

  /** Notes entries that were dropped before it was sent them, and continues after `seq`. */
  drop(count: number, seq: number): void {
    if (count <= 0) return;
    this.miss(count);
    this.cursor = seq;
  }

  /** Notes events that never came this far. */
  miss(count: number): void {
    this.#unreported += count;
    this.#dropped += count;
  }

  /** Sends what there is to send, as much as one visit allows. True when there is more that could be sent at once. */
  visit(nowMs: number): boolean {
    const sink = this.#sink;
    if (sink === undefined || this.#isOver || this.blockedSinceMs !== undefined) return false;
    let hasMore = false;
    sink.together(() => {
      hasMore = this.#write(sink);
    });
    if (this.#isOver) return false;
    if (sink.unsentBytes() > MAX_UNSENT_BYTES) {
      this.blockedSinceMs = nowMs;
      this.#isBehind = true;
      return false;
    }
    return hasMore;
  }

  /** The socket has taken something. True when the reader can be visited again. */
  drained(): boolean {
    if (
      this.blockedSinceMs === undefined ||
      this.#sink === undefined ||
      this.#sink.unsentBytes() > MAX_UNSENT_BYTES / 2
    )
      return false;
    this.blockedSinceMs = undefined;
    return true;
  }

  /** A page of the snapshot. Operations that have changed since it was requested are left out: the change is newer. */
  takePage({ items, next }: Page<OpView>, newId: () => string, home: string | undefined): void {
    const changed = new Set<string>();
    for (
      let index = this.channel.indexAfter(this.cursor), entry;
      (entry = this.channel.at(index)) !== undefined;
      index += 1
    ) {
      if (entry.op !== undefined) changed.add(entry.op);
    }
    const unchanged = items.filter((op) => !changed.has(opKeyOf(op.agent.orgId, op)));
    this.snapshot?.take(
      unchanged.map((op) => snapshotFrame(newId(), op, this.channel.interest.lineage, home)),
      next,
    );
  }

  close({ code, reason }: CloseReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink?.end(code, reason);
  }

  /** The socket is gone. */
  closed(): void {
    this.#isOver = true;
  }

  #write(sink: StreamSocket): boolean {
    let left = VISIT_BYTES;
    for (let row; left > 0 && (row = this.snapshot?.next()) !== undefined; ) {
      this.#send(sink, row);
      left -= row.length;
    }
    // Changes since the page was requested follow the page's rows.
    if (this.snapshot?.isHolding === true) return left <= 0;
    if (this.#unreported > 0) {
      this.#send(sink, laggedFrame(this.#unreported));
      this.#unreported = 0;
    }
    let index = this.channel.indexAfter(this.cursor);
    if (this.channel.length - index > BEHIND_ENTRIES) this.#isBehind = true;
    for (let entry; left > 0 && (entry = this.channel.at(index)) !== undefined; index += 1) {
      this.cursor = entry.seq;
      if (this.#isBehind && entry.isSuperseded) continue;
      this.#send(sink, entry.frame);
      left -= entry.frame.length;
    }
    const hasMore = index < this.channel.length;
    if (!hasMore) this.#isBehind = false;
    return hasMore;
  }

  #send(sink: StreamSocket, frame: Buffer): void {
    if (sink.send(frame)) return;
    this.#unreported += 1;
    this.#dropped += 1;
  }
}
