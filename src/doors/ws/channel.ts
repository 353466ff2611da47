/** Events for readers with the same filter, kept once for all of them. */
import type { OpId } from '../../core/base/ids.ts';
import { lowerBound } from '../../core/base/sorted.ts';
import type { EventKind, GatewayEvent } from '../../ports/events.ts';

/** Two orgs may use the same id, and so may two gateways of a cluster. */
export const opKeyOf = (
  orgId: string | null,
  { opId, home = '' }: { readonly opId: OpId; readonly home?: string | undefined },
): string => `${orgId ?? ''}/${opId} ${home}`;

/** An event of this thread, in one of its forms. All channels that want that form share it. */
export type Entry = {
  /** Grows by one for each event of this thread; its forms have the same. */
  readonly seq: number;
  readonly frame: Buffer;
  /** The operation whose state it reports, by {@link opKeyOf}; undefined for other kinds. */
  readonly op: string | undefined;
  /** The form that names the team and the time of registration; only an `ops_change` has one. */
  readonly lineage: boolean;
  /** A later event has a newer state of the same operation. */
  isSuperseded: boolean;
  /** How many channels keep it. */
  holders: number;
};

/**
 * The events that readers of a channel want. `orgId` null: every org's, and those of none. `lineage`: adds the team of
 * each operation, and its registration time.
 */
export type ReaderInterest = {
  readonly orgId: string | null;
  readonly kinds: ReadonlySet<EventKind>;
  readonly lineage: boolean;
};

export const channelKeyOf = ({ orgId, kinds, lineage }: ReaderInterest): string =>
  `${[...kinds].sort().join(',')} ${lineage ? 'lineage' : ''} ${orgId ?? ''}`;

/** A reader as its channel sees it. */
type Follower = {
  /** The last entry that it was sent. */
  readonly cursor: number;
  /** `count` entries, up to `seq`, will not be sent. */
  drop(count: number, seq: number): void;
};

export class Channel<Reader extends Follower = Follower> {
  readonly key: string;
  readonly interest: ReaderInterest;
  readonly readers = new Set<Reader>();
  /** In their order, the oldest first. */
  #entries: Entry[] = [];
  readonly #release: (entry: Entry) => void;

  /** `release` is called for every entry that this channel drops. */
  constructor(interest: ReaderInterest, release: (entry: Entry) => void) {
    this.key = channelKeyOf(interest);
    this.interest = interest;
    this.#release = release;
  }

  get length(): number {
    return this.#entries.length;
  }

  wants({ kind, orgId }: GatewayEvent): boolean {
    const { interest } = this;
    return interest.kinds.has(kind) && (interest.orgId === null || interest.orgId === orgId);
  }

  push(entry: Entry): void {
    entry.holders += 1;
    this.#entries.push(entry);
  }

  at(index: number): Entry | undefined {
    return this.#entries[index];
  }

  /** The index of the first entry after `seq`. */
  indexAfter(seq: number): number {
    return lowerBound(this.#entries.length, (at) => this.#entries[at]!.seq <= seq);
  }

  /** Drops the entries that every reader has been sent. */
  trim(): void {
    if (this.#entries.length === 0) return;
    let least = Infinity;
    for (const { cursor } of this.readers) if (cursor < least) least = cursor;
    this.#shift(this.indexAfter(least));
  }

  /** Makes room: drops superseded entries first, then the oldest, whose readers get a `lagged` event. */
  shrink(most: number): void {
    const kept = this.#entries.filter(({ isSuperseded }) => !isSuperseded);
    for (const entry of this.#entries) if (entry.isSuperseded) this.#release(entry);
    this.#entries = kept;
    const excess = kept.length - most;
    if (excess <= 0) return;
    const newestGone = kept[excess - 1]!.seq;
    for (const reader of this.readers) reader.drop(excess - this.indexAfter(reader.cursor), newestGone);
    this.#shift(excess);
  }

  clear(): void {
    this.#shift(this.#entries.length);
  }

  #shift(count: number): void {
    if (count === 0) return;
    for (const entry of this.#entries.splice(0, count)) this.#release(entry);
  }
}
