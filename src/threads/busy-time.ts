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
