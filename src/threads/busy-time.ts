type Thread = { readonly performance: Pick<typeof performance, 'eventLoopUtilization'> };

/** How long the event loops of threads have been busy, by name. A thread that takes the name of one that died goes on from there. */
export class BusyTime {
  readonly #known = new Map<string, { readonly thread: Thread; readonly ownMs: number; readonly beforeMs: number }>();

  /** Never less than at the call before. What the thread of before was busy for since then is not in it. */
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
