import type { Bus, ClusterMessage, Membership, RunId } from '../ports/cluster.ts';
import type { GatewayEvent, Interest, UnnumberedEvent } from '../ports/events.ts';
import { homeOf } from './run.ts';

export type SharedEventsOptions = {
  readonly bus: Bus;
  readonly membership: Membership;
  /** Applies the interest of all watchers elsewhere together. */
  readonly setInterest: (interest: Interest) => void;
  /** Shows an event of another gateway to those who watch here. */
  readonly show: (event: UnnumberedEvent) => void;
  /** Counts lost events of other gateways. */
  readonly lost: (count: number) => void;
  /** A clock that nobody sets. */
  readonly steadyMs: () => number;
};

type EventsMessage = Extract<ClusterMessage, { type: 'events' }>;
type WatchMessage = Extract<ClusterMessage, { type: 'watch' }>;

/** Events for one gateway where somebody watches. */
type Outbox = {
  /** Which watch of that gateway it is for. */
  readonly watch: number;
  readonly birth: number;
  interest: 'all' | ReadonlySet<string>;
  heardMs: number;
  /** In their order; of each operation the newest only. */
  readonly events: Map<string | number, GatewayEvent>;
  /** How many there were in all: those that wait, were sent, or were dropped. */
  count: number;
  isDue: boolean;
};

/** The events of a gateway since somebody watches here. */
type Source = { readonly birth: number; count: number; heardMs: number; isSilent: boolean };

const BATCH_MS = 50;
/** In one batch: 4,000 events per second from each gateway, more than anybody can look at. */
const MAX_BATCH = 200;
/** Beyond that, all events come, and are left out where they are shown. */
const MAX_ORGS = 100;
const WATCH_EVERY_MS = 5_000;
/** Three messages may be lost before a watch is forgotten, or a gateway taken for silent. */
const FORGET_AFTER_MS = 16_000;

/**
 * Live events of all gateways. A gateway where somebody watches says so, and for which orgs; the others send it what
 * happens there, and nothing while nobody watches. Events are counted, so that those that are dropped, lost on the way
 * or come twice are known; how many were missed of a gateway that forgot the watch or has ended, nobody knows: one.
 */
export class SharedEvents {
  readonly #options: SharedEventsOptions;
  readonly #outboxes = new Map<RunId, Outbox>();
  readonly #sources = new Map<RunId, Source>();
  #others: readonly RunId[];
  #interest: Interest = [];
  #watch = 0;
  #births = 0;
  #flushing: NodeJS.Timeout | undefined;
  #watching: NodeJS.Timeout | undefined;

  constructor(options: SharedEventsOptions) {
    this.#options = options;
    const { bus, membership } = options;
    this.#others = membership.others().map(({ run }) => run);
    bus.onMessage((from, message) => {
      if (message.type === 'watch') this.#watched(from, message);
      else if (message.type === 'events') this.#receive(from, message);
    });
    bus.onGap(() => this.#announce());
    membership.onChange(() => this.#recount());
  }

  /** Sets the interest of all watchers here together. */
  watch(interest: Interest): void {
    const wasWatched = this.#isWatched;
    this.#interest = interest !== 'all' && interest.length > MAX_ORGS ? 'all' : interest;
    if (!this.#isWatched) {
      clearInterval(this.#watching);
      this.#sources.clear();
      if (wasWatched) this.#send();
      return;
    }
    if (!wasWatched) {
      this.#watch += 1;
      this.#watching = setInterval(() => this.#renew(), WATCH_EVERY_MS);
      this.#watching.unref();
    }
    this.#send();
  }

  /** An event of this gateway, for those who watch elsewhere. */
  take(event: GatewayEvent): void {
    for (const outbox of this.#outboxes.values()) {
      const { interest } = outbox;
      if (interest !== 'all' && (event.orgId === null || !interest.has(event.orgId))) continue;
      this.#put(outbox, event);
    }
  }

  stop(): void {
    clearInterval(this.#watching);
    clearTimeout(this.#flushing);
  }

  get #isWatched(): boolean {
    return this.#interest === 'all' || this.#interest.length > 0;
  }

  #put(outbox: Outbox, event: GatewayEvent): void {
    const key = event.kind === 'ops_change' ? `${event.orgId ?? ''}/${event.payload.opId}` : event.id;
    const isNewer = outbox.events.delete(key);
    if (!isNewer) outbox.count += 1;
    if (outbox.events.size < MAX_BATCH) outbox.events.set(key, event);
    this.#due(outbox);
  }

  #due(outbox: Outbox): void {
    outbox.isDue = true;
    this.#flushing ??= setTimeout(() => this.#flush(), BATCH_MS).unref();
  }

  #flush(): void {
    this.#flushing = undefined;
    const { bus, steadyMs } = this.#options;
    const nowMs = steadyMs();
    for (const [run, outbox] of [...this.#outboxes]) {
      if (nowMs - outbox.heardMs > FORGET_AFTER_MS) {
        this.#outboxes.delete(run);
        this.#sumInterests();
      } else if (outbox.isDue) {
        const { watch, birth, count } = outbox;
        const events = Array.from(outbox.events.values(), ({ id: _, ...event }) => event);
        outbox.events.clear();
        outbox.isDue = false;
        // Not sent: they are counted, so the next message says that they are missing.
        bus.send(run, { type: 'events', watch, birth, count, events });
      }
    }
  }

  #watched(from: RunId, { watch, interest }: WatchMessage): void {
    const known = this.#outboxes.get(from);
    if (interest !== 'all' && interest.length === 0) {
      if (this.#outboxes.delete(from)) this.#sumInterests();
      return;
    }
    const wanted = interest === 'all' ? interest : new Set(interest);
    const heardMs = this.#options.steadyMs();
    if (known?.watch === watch) {
      known.interest = wanted;
      known.heardMs = heardMs;
      this.#due(known); // also with nothing: then it is known that nothing was missed
    } else {
      this.#births += 1;
      const outbox = {
        watch,
        birth: this.#births,
        interest: wanted,
        heardMs,
        events: new Map(),
        count: 0,
        isDue: false,
      };
      this.#outboxes.set(from, outbox);
      this.#due(outbox);
    }
    this.#sumInterests();
  }

  #sumInterests(): void {
    const orgs = new Set<string>();
    for (const { interest } of this.#outboxes.values()) {
      if (interest === 'all') return this.#options.setInterest('all');
      for (const org of interest) orgs.add(org);
    }
    this.#options.setInterest([...orgs]);
  }

  #receive(from: RunId, { watch, birth, count, events }: EventsMessage): void {
    if (!this.#isWatched || watch !== this.#watch) return;
    const known = this.#sources.get(from);
    if (known !== undefined && birth < known.birth) return;
    // A gateway that has begun anew had forgotten the watch.
    if (known !== undefined && birth > known.birth) this.#options.lost(1);
    const before = known?.birth === birth ? known.count : 0;
    if (count < before || (count === before && events.length > 0)) return; // came before
    const missing = count - events.length - before;
    if (missing > 0) this.#options.lost(missing);
    this.#sources.set(from, { birth, count, heardMs: this.#options.steadyMs(), isSilent: false });
    const home = homeOf(from);
    for (const event of events)
      this.#options.show(event.kind === 'ops_change' ? { ...event, payload: { ...event.payload, home } } : event);
  }

  #renew(): void {
    this.#send();
    const nowMs = this.#options.steadyMs();
    for (const source of this.#sources.values()) {
      if (source.isSilent || nowMs - source.heardMs <= FORGET_AFTER_MS) continue;
      source.isSilent = true;
      this.#options.lost(1);
    }
  }

  #announce(): void {
    if (this.#isWatched) this.#send();
  }

  #send(): void {
    this.#options.bus.send('all', { type: 'watch', watch: this.#watch, interest: this.#interest });
  }

  #recount(): void {
    const others = this.#options.membership.others().map(({ run }) => run);
    let isFewer = false;
    for (const run of [...this.#outboxes.keys()])
      if (!others.includes(run)) isFewer = this.#outboxes.delete(run) || isFewer;
    if (isFewer) this.#sumInterests();
    const isNew = others.some((run) => !this.#others.includes(run));
    // The operations of a run that has ended are gone without an event, and one that is new may have some already.
    const isOther = isNew || this.#others.some((run) => !others.includes(run));
    this.#others = others;
    for (const run of [...this.#sources.keys()]) if (!others.includes(run)) this.#sources.delete(run);
    if (!this.#isWatched || !isOther) return;
    if (isNew) this.#send();
    this.#options.lost(1);
  }
}
