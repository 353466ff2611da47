import { sumOfDurations } from '../../core/stats/durations.ts';
import type { GatewayEvent } from '../../ports/events.ts';
import { Batcher, type Outlet } from '../batcher.ts';
import { type HeldMessage, type IoId, type IoStats, type MainToDoors, type MainToIo, OWN } from '../protocol.ts';

/** Takes recorded answers. `firstId` is the id of their first entry. */
type Release = (firstId: number, replies: readonly MainToDoors[]) => void;

type Thread = {
  readonly batcher: { send(message: MainToDoors): void; flush(): void; readonly last: unknown };
  /** Releases answers to doors in the main thread, and to its own questions. */
  readonly release: Release | undefined;
  /** Sends to an I/O thread, which holds answers until they are recorded. */
  readonly holder: Batcher<MainToIo> | undefined;
  stats: IoStats | undefined;
  /** The number of registered agents that it was sent last. */
  agentCount: number;
  /** The latest message of events. Further events are added to it as long as no other message comes after it. */
  events: { readonly message: MainToDoors; readonly list: GatewayEvent[] } | undefined;
};

const NEW_THREAD = {
  release: undefined,
  holder: undefined,
  stats: undefined,
  agentCount: 0,
  events: undefined,
} satisfies Omit<Thread, 'batcher'>;

/** The I/O threads that are running, as the main thread sends to them. What is sent to one that is gone is dropped. */
export class IoThreads {
  readonly #threads = new Map<IoId, Thread>();
  /** By number: the threads that have not confirmed yet, and whom to notify when all have. */
  readonly #confirming = new Map<number, { readonly missing: Set<IoId>; readonly done: () => void }>();
  #lastConfirm = 0;
  /** The counts of threads that died. Without them counters would fall, which looks like a restart of the gateway. */
  #retired = NO_STATS;

  connect(io: IoId, outlet: Outlet<MainToIo>): void {
    const batcher = new Batcher<MainToIo>(outlet);
    this.#threads.set(io, { ...NEW_THREAD, batcher, holder: batcher });
  }

  /** Doors in the main thread: recorded answers are given to `release`. */
  connectDoors(io: IoId, outlet: Outlet<MainToDoors>, release: Release): void {
    this.#threads.set(io, { ...NEW_THREAD, batcher: new Batcher<MainToDoors>(outlet), release });
  }

  /** Answers to the main thread's own questions go to this function, as soon as they are sent or recorded. */
  connectOwn(receive: (message: MainToDoors) => void): void {
    const batcher = { send: receive, flush: () => {}, last: undefined };
    this.#threads.set(OWN, { ...NEW_THREAD, batcher, release: (_, replies) => replies.forEach(receive) });
  }

  disconnect(io: IoId): void {
    const last = this.#threads.get(io)?.stats;
    if (last !== undefined) this.#retired = leftBy(last, this.#retired);
    this.#threads.delete(io);
    for (const number of this.#confirming.keys()) this.noteConfirmed(io, number);
  }

  /** The counts of all threads, including those that died. */
  get stats(): readonly IoStats[] {
    return [this.#retired, ...[...this.#threads.values()].flatMap(({ stats }) => stats ?? [])];
  }

  noteStats(io: IoId, stats: IoStats): void {
    const thread = this.#threads.get(io);
    if (thread !== undefined) thread.stats = stats;
  }

  /** Whether its recorded answers are given in the main thread: it holds none. */
  isHere(io: IoId): boolean {
    return this.#threads.get(io)?.release !== undefined;
  }

  release(io: IoId, firstId: number, replies: readonly MainToDoors[]): void {
    this.#threads.get(io)?.release?.(firstId, replies);
  }

  /** For an I/O thread. */
  hold(io: IoId, message: HeldMessage): void {
    this.#threads.get(io)?.holder?.send(message);
  }

  /** The answers that I/O threads hold are not recorded from this batch on. */
  dropHeld(from: number): void {
    for (const { holder } of this.#threads.values()) {
      holder?.send({ type: 'not-recorded', from });
      holder?.flush();
    }
  }

  /** Flushed at once: a revocation must reach every thread before any thread gets the answer. */
  broadcast(message: MainToDoors): void {
    for (const { batcher } of this.#threads.values()) {
      batcher.send(message);
      batcher.flush();
    }
  }

  /** Resolves when all that was sent before holds in every thread; one that ends meanwhile holds nothing. */
  confirmed(): Promise<void> {
    const missing = new Set(Array.from(this.#threads.keys()).filter((io) => io !== OWN));
    if (missing.size === 0) return Promise.resolve();
    this.#lastConfirm += 1;
    const number = this.#lastConfirm;
    return new Promise((done) => {
      this.#confirming.set(number, { missing, done });
      this.broadcast({ type: 'confirm', number });
    });
  }

  noteConfirmed(io: IoId, number: number): void {
    const confirming = this.#confirming.get(number);
    if (!confirming?.missing.delete(io) || confirming.missing.size > 0) return;
    this.#confirming.delete(number);
    confirming.done();
  }

  send(io: IoId, message: MainToDoors): void {
    this.#threads.get(io)?.batcher.send(message);
  }

  /** Call it with each report of the thread, not with each registration: that would be a message for every one. */
  sendAgentCount(io: IoId, count: number): void {
    const thread = this.#threads.get(io);
    if (thread === undefined || thread.agentCount === count) return;
    thread.agentCount = count;
    thread.batcher.send({ type: 'agent-count', count });
  }

  /** Events keep their place among the replies: a listing and the events after it arrive in that order. */
  notify(io: IoId, event: GatewayEvent): void {
    const thread = this.#threads.get(io);
    if (thread === undefined) return;
    if (thread.events !== undefined && thread.batcher.last === thread.events.message)
      return void thread.events.list.push(event);
    const list = [event];
    thread.events = { message: { type: 'events', events: list }, list };
    thread.batcher.send(thread.events.message);
  }

  /** Sends what waits for the thread now. */
  flush(io: IoId): void {
    this.#threads.get(io)?.batcher.flush();
  }
}

export const NO_STATS: IoStats = {
  pendingRequests: 0,
  webSockets: 0,
  controlStreams: 0,
  droppedEvents: 0,
  refusedRequests: 0,
  requests: { http: 0, grpc: 0, connect: 0 },
  checks: { counts: [], sumMs: 0 },
};

/** Adds the counts of a thread that died to those of others before it. */
export const leftBy = (last: IoStats, others: IoStats): IoStats => ({
  pendingRequests: 0,
  webSockets: 0,
  controlStreams: 0,
  droppedEvents: last.droppedEvents + others.droppedEvents,
  refusedRequests: last.refusedRequests + others.refusedRequests,
  requests: {
    http: last.requests.http + others.requests.http,
    grpc: last.requests.grpc + others.requests.grpc,
    connect: last.requests.connect + others.requests.connect,
  },
  checks: sumOfDurations([last.checks, others.checks]),
});
