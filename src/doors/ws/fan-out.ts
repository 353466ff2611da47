/** Delivers events to the readers of one I/O thread, as fast as each of them reads. */

import { Multimap } from '../../core/base/lists.ts';
import type { Page, PageRequest } from '../../core/base/page.ts';
import { fail, ok, type Result } from '../../core/base/result.ts';
import type { OrgFilter } from '../../core/commands.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { OpView } from '../../core/ops/op-view.ts';
import { CallerQuota } from '../../fairness/fair-queue.ts';
import type { GatewayEvent, Interest } from '../../ports/events.ts';
import type { StreamSocket } from '../engine/engine.ts';
import { Channel, channelKeyOf, type Entry, opKeyOf, type ReaderInterest } from './channel.ts';
import { frameOf } from './frames.ts';
import { CLOSE, type CloseReason, Reader } from './reader.ts';

/** Events that one channel keeps for readers that are behind, and that all of a thread's channels keep. */
type MostEntries = { readonly ofChannel: number; readonly ofThread: number };

export type FanOutOptions = {
  /** How many readers there may be, and half as many of one org. */
  readonly maxReaders: number;
  /** Called whenever the set of orgs changes for whose events this thread has readers. */
  readonly onInterest: (interest: Interest) => void;
  readonly listOps: (request: OrgFilter & PageRequest) => Promise<Result<Page<OpView>, Fault>>;
  readonly onError: (error: unknown) => void;
  /** The time by which credentials end. */
  readonly nowMs: () => number;
  /** Makes ids of snapshot frames differ from those of other threads and other runs. */
  readonly name: string;
  /** In a cluster: the `op_home` of this gateway's own operations. */
  readonly home?: string | undefined;
  /** MOST_ENTRIES where it is not given. */
  readonly most?: MostEntries;
};

export type Seat = {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  readonly interest: ReaderInterest;
  readonly wantsSnapshot: boolean;
};

const MOST_ENTRIES: MostEntries = { ofChannel: 50_000, ofThread: 200_000 };
/** How long readers are served before requests get their turn again: a check has two turns to wait for. */
const SLICE_MS = 0.5;
/**
 * After its readers have had their turn, a channel rests for as long as that took, but no longer than this. Meanwhile
 * events gather, and each reader gets them in one packet rather than in one each.
 */
const MAX_REST_MS = 10;
/** Shorter rests are none: a timer would take longer. */
const MIN_REST_MS = 1;
const SWEEP_EVERY_MS = 1_000;
/** A reader that takes nothing for this long, in milliseconds, is disconnected. */
const STUCK_AFTER_MS = 30_000;
const MAX_MESSAGES_PER_SWEEP = 20;
const SNAPSHOT_PAGE = 500;

/** A pass over all readers of a channel. `isAgain`: there will be more to send. */
type Pass = { readonly readers: Iterator<Reader>; isAgain: boolean; tookMs: number };

export class FanOut {
  readonly #options: FanOutOptions;
  readonly #most: MostEntries;
  readonly #readers = new Set<Reader>();
  readonly #quota: CallerQuota;
  readonly #channels = new Map<string, Channel<Reader>>();
  /** The channels by the org they are about; null: every org. */
  readonly #byOrg = new Multimap<string | null, Channel<Reader>>();
  /** For each form, the kept entry with the newest state of each operation. */
  readonly #latest = { bare: new Map<string, Entry>(), lineage: new Map<string, Entry>() };
  /** Channels with something to send, each with the readers whose turn is still to come. */
  readonly #passes = new Map<Channel<Reader>, Pass>();
  /** Channels that rest, and whether they have something to send afterwards. */
  readonly #resting = new Map<Channel<Reader>, boolean>();
  /** Readers that wait for the next page of their snapshot. */
  readonly #pageQueue = new Set<Reader>();
  readonly #timer: NodeJS.Timeout;
  #seq = 0;
  #held = 0;
  #snapshotFrames = 0;
  #droppedBefore = 0;
  #isServing = false;
  #isReadingPage = false;

  constructor(options: FanOutOptions) {
    this.#options = options;
    this.#most = options.most ?? MOST_ENTRIES;
    this.#quota = new CallerQuota(options.maxReaders);
    this.#timer = setInterval(() => this.#sweep(), SWEEP_EVERY_MS);
    this.#timer.unref();
  }

  /** How many readers there are, including those that are still connecting. */
  get size(): number {
    return this.#readers.size;
  }
  /** Events that readers were too slow for, since the thread started. */
  get dropped(): number {
    let dropped = this.#droppedBefore;
    for (const reader of this.#readers) dropped += reader.dropped;
    return dropped;
  }
  /** Events kept for readers that are behind. */
  get held(): number {
    return this.#held;
  }

  /** Reserves a place for a reader that is not connected yet. From now on it misses no event of its filter. */
  reserve({ principal, expiresAtMs, interest, wantsSnapshot }: Seat): Result<Reader, Fault> {
    if (this.#readers.size >= this.#options.maxReaders || !this.#quota.tryAcquire(principal.orgId))
      return fail({ kind: 'overloaded', retryAfterSecs: 5, what: 'the number of streams' });
    const channel = this.#channelFor(interest);
    const reader = new Reader({
      principal,
      expiresAtMs,
      channel,
      cursor: this.#seq,
      wantsSnapshot: wantsSnapshot && interest.kinds.has('ops_change'),
    });
    channel.readers.add(reader);
    this.#readers.add(reader);
    return ok(reader);
  }

  /** The reader is connected. */
  open(reader: Reader, sink: StreamSocket): void {
    reader.open(sink);
    this.#visit(reader);
  }

  /** Removes a reader that is gone or never connected. */
  leave(reader: Reader): void {
    reader.closed();
    if (!this.#readers.delete(reader)) return;
    this.#quota.release(reader.principal.orgId);
    this.#droppedBefore += reader.dropped;
    this.#pageQueue.delete(reader);
    reader.channel.readers.delete(reader);
    // Interest in the org ends with the sweep, not here: readers that leave together often return together.
  }

  publish(events: readonly GatewayEvent[]): void {
    for (const event of events) this.#add(event);
  }

  /** Events lost from other gateways may be any org's: their number is only for readers who see all. */
  reportLost(count: number): void {
    for (const reader of this.#readers) {
      reader.miss(reader.principal.orgId === null ? count : 1);
      this.#schedule(reader.channel);
    }
  }

  /** Call it when the reader's socket has taken some of what was sent. */
  drained(reader: Reader): void {
    if (reader.drained()) this.#visit(reader);
  }

  /** Clients have nothing to send here; one that keeps sending is disconnected. */
  heard(reader: Reader): void {
    reader.messages += 1;
    if (reader.messages > MAX_MESSAGES_PER_SWEEP) reader.close(CLOSE.tooManyMessages);
  }

  closeSubject(subject: string): void {
    for (const reader of [...this.#readers])
      if (reader.principal.subject === subject) reader.close(CLOSE.credentialEnded);
  }

  closeAll(reason: CloseReason): void {
    clearInterval(this.#timer);
    for (const reader of [...this.#readers]) reader.close(reason);
  }

  #channelFor(interest: ReaderInterest): Channel<Reader> {
    const key = channelKeyOf(interest);
    const known = this.#channels.get(key);
    if (known !== undefined) return known;
    const channel = new Channel<Reader>(interest, this.#release);
    this.#channels.set(key, channel);
    const isNewOrg = !this.#byOrg.has(interest.orgId);
    this.#byOrg.add(interest.orgId, channel);
    if (isNewOrg) this.#sendInterest();
    return channel;
  }

  #add(event: GatewayEvent): void {
    this.#seq += 1;
    // Each form is encoded once, on first demand, and dropped with the last channel that keeps it.
    let bare: Entry | undefined;
    let full: Entry | undefined;
    for (const orgId of event.orgId === null ? [null] : [null, event.orgId]) {
      for (const channel of this.#byOrg.of(orgId)) {
        if (channel.readers.size === 0 || !channel.wants(event)) continue;
        if (event.kind === 'ops_change' && channel.interest.lineage)
          channel.push((full ??= this.#entryOf(event, true)));
        else channel.push((bare ??= this.#entryOf(event, false)));
        this.#held += 1;
        if (channel.length > this.#most.ofChannel) channel.shrink(this.#most.ofChannel * 0.75);
        this.#schedule(channel);
      }
    }
    if (this.#held > this.#most.ofThread) this.#shrinkLargest();
  }

  #entryOf(event: GatewayEvent, lineage: boolean): Entry {
    const op = event.kind === 'ops_change' ? opKeyOf(event.orgId, event.payload) : undefined;
    const entry: Entry = {
      seq: this.#seq,
      frame: frameOf(event, lineage, this.#options.home),
      op,
      lineage,
      isSuperseded: false,
      holders: 0,
    };
    if (op !== undefined) {
      const latest = this.#latestOf(entry);
      const before = latest.get(op);
      if (before !== undefined) before.isSuperseded = true;
      latest.set(op, entry);
    }
    return entry;
  }

  /** A channel has dropped the entry. */
  readonly #release = (entry: Entry): void => {
    this.#held -= 1;
    entry.holders -= 1;
    if (entry.holders > 0 || entry.op === undefined) return;
    const latest = this.#latestOf(entry);
    if (latest.get(entry.op) === entry) latest.delete(entry.op);
  };

  #latestOf({ lineage }: Entry): Map<string, Entry> {
    return lineage ? this.#latest.lineage : this.#latest.bare;
  }

  #shrinkLargest(): void {
    let largest: Channel<Reader> | undefined;
    for (const channel of this.#channels.values())
      if (largest === undefined || channel.length > largest.length) largest = channel;
    largest?.shrink(Math.floor(largest.length / 2));
  }

  #schedule(channel: Channel<Reader>): void {
    if (this.#resting.has(channel)) return void this.#resting.set(channel, true);
    const pass = this.#passes.get(channel);
    if (pass !== undefined) pass.isAgain = true;
    else this.#passes.set(channel, { readers: channel.readers.values(), isAgain: false, tookMs: 0 });
    if (this.#isServing) return;
    this.#isServing = true;
    setImmediate(this.#serve);
  }

  /** Serves readers for a slice of time, the channel first that has waited longest. */
  readonly #serve = (): void => {
    this.#isServing = this.#serveUntil(performance.now() + SLICE_MS);
    if (this.#isServing) setImmediate(this.#serve);
  };

  /** True when there are readers left whose turn has come. */
  #serveUntil(untilMs: number): boolean {
    for (const [channel, pass] of this.#passes) {
      const fromMs = performance.now();
      const isOver = this.#walk(pass, untilMs);
      pass.tookMs += performance.now() - fromMs;
      if (!isOver) return true;
      this.#passes.delete(channel);
      channel.trim();
      this.#rest(channel, pass);
      if (performance.now() >= untilMs) break;
    }
    return this.#passes.size > 0;
  }

  #rest(channel: Channel<Reader>, { tookMs, isAgain }: Pass): void {
    if (tookMs < MIN_REST_MS) return isAgain ? this.#schedule(channel) : undefined;
    this.#resting.set(channel, isAgain);
    setTimeout(
      () => {
        const hasMore = this.#resting.get(channel) === true;
        this.#resting.delete(channel);
        if (hasMore && channel.readers.size > 0) this.#schedule(channel);
      },
      Math.min(tookMs, MAX_REST_MS),
    ).unref();
  }

  /** True when every reader of the pass has had its turn. */
  #walk(pass: Pass, untilMs: number): boolean {
    for (let next = pass.readers.next(); next.done !== true; next = pass.readers.next()) {
      if (this.#sendTo(next.value)) pass.isAgain = true;
      if (performance.now() >= untilMs) return false;
    }
    return true;
  }

  /** Sends to this reader now; what is left waits for the turns of its channel. */
  #visit(reader: Reader): void {
    if (this.#sendTo(reader)) this.#schedule(reader.channel);
  }

  /**
   * Sends as much as one turn allows, and asks for the next page of its snapshot where that is due. True when there is
   * more to send.
   */
  #sendTo(reader: Reader): boolean {
    const hasMore = reader.visit(performance.now());
    if (reader.snapshot?.wantsPage === true && !reader.isOver) {
      this.#pageQueue.add(reader);
      this.#readPage();
    }
    return hasMore;
  }

  /** Reads one page at a time, so that a thousand dashboards that come at once leave the main thread to the checks. */
  #readPage(): void {
    if (this.#isReadingPage) return;
    const [reader] = this.#pageQueue;
    if (reader === undefined) return;
    this.#pageQueue.delete(reader);
    const { snapshot, principal, channel } = reader;
    if (snapshot === undefined) return;
    this.#isReadingPage = true;
    snapshot.await();
    this.#options
      .listOps({
        principal,
        orgId: channel.interest.orgId ?? undefined,
        perPage: SNAPSHOT_PAGE,
        cursor: snapshot.cursor,
      })
      .then(
        (page) => this.#takePage(reader, page),
        (error: unknown) => {
          this.#options.onError(error);
          reader.close(CLOSE.tryAgain);
        },
      )
      .finally(() => {
        this.#isReadingPage = false;
        this.#readPage();
      });
  }

  #takePage(reader: Reader, page: Result<Page<OpView>, Fault>): void {
    if (reader.isOver) return;
    if (!page.ok) return reader.close(CLOSE.tryAgain);
    const { name, home } = this.#options;
    reader.takePage(page.value, () => `${name}-${(this.#snapshotFrames += 1)}`, home);
    this.#visit(reader);
  }

  #sweep(): void {
    const nowMs = performance.now();
    const dateMs = this.#options.nowMs();
    for (const reader of [...this.#readers]) {
      reader.messages = 0;
      if (reader.expiresAtMs <= dateMs) reader.close(CLOSE.credentialEnded);
      else if (reader.blockedSinceMs !== undefined && nowMs - reader.blockedSinceMs > STUCK_AFTER_MS)
        reader.close(CLOSE.tooSlow);
    }
    this.#dropEmptyChannels();
  }

  #dropEmptyChannels(): void {
    let isFewer = false;
    for (const channel of [...this.#channels.values()]) {
      if (channel.readers.size > 0) {
        channel.trim();
        continue;
      }
      channel.clear();
      this.#channels.delete(channel.key);
      this.#passes.delete(channel);
      this.#byOrg.delete(channel.interest.orgId, channel);
      isFewer ||= !this.#byOrg.has(channel.interest.orgId);
    }
    if (isFewer) this.#sendInterest();
  }

  #sendInterest(): void {
    const orgs = [...this.#byOrg.keys()];
    this.#options.onInterest(orgs.includes(null) ? 'all' : orgs.filter((org) => org !== null));
  }
}
