/**
 * How the calls of a client wait: for an event, for a free slot, between two attempts, until the others are done, and
 * no longer than their caller does.
 */

/** Options of every call but `close`, in the last place. */
export type CallOptions = {
  /** Ends the wait: when it is aborted, the call rejects with its `reason`. */
  readonly signal?: AbortSignal | undefined;
};

/** All listeners of one signal. Node.js takes more than ten listeners for a leak and warns. */
class Audience {
  readonly callbacks = new Set<() => void>();
  handleEvent(): void {
    for (const callback of this.callbacks) callback();
  }
}

const AUDIENCES = new WeakMap<AbortSignal, Audience>();

/** Calls back once when the signal is aborted, at once where it is already. Returns a function that takes this back. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const audience = AUDIENCES.get(signal) ?? gather(signal);
  audience.callbacks.add(callback);
  return () => {
    audience.callbacks.delete(callback);
    if (audience.callbacks.size > 0) return;
    signal.removeEventListener('abort', audience);
    AUDIENCES.delete(signal);
  };
}

function gather(signal: AbortSignal): Audience {
  const audience = new Audience();
  AUDIENCES.set(signal, audience);
  signal.addEventListener('abort', audience, { once: true });
  return audience;
}

/**
 * Settles with the promise, or rejects with the signal's reason before, right after `onLeft`: nobody learns then how
 * the promise settles.
 */
export function unlessAborted<T>(
  signal: AbortSignal | undefined,
  promise: Promise<T>,
  onLeft = (): void => {},
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => {
      onLeft();
      reject(signal.reason as Error);
    });
    // Before it settles: a caller that aborts after hearing the result has not left.
    void promise.finally(() => stopListening()).then(resolve, reject);
  });
}

/** Callers that wait for something to happen, each until its timeout or until its signal is aborted. */
export class Waiters {
  /** Sorted by time, the longest wait first. */
  readonly #waiting = new Set<(hasHappened: boolean) => void>();

  /** Resolves with whether it happened in time. */
  wait(ms: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (hasHappened: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        stopListening();
        resolve(hasHappened);
      };
      const timer = setTimeout(() => settle(false), ms);
      this.#waiting.add(settle);
      const stopListening = onAbort(signal, () => settle(false));
    });
  }

  /** It has happened, and is for one of them alone. False when nobody waits. */
  notifyFirst(): boolean {
    for (const settle of this.#waiting) {
      settle(true);
      return true;
    }
    return false;
  }

  /** Ends all waits. */
  notifyAll(hasHappened: boolean): void {
    for (const settle of this.#waiting) settle(hasHappened);
  }
}

/** Limits how many run at once. The others wait in order. */
export class Slots {
  readonly #waiters = new Waiters();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /**
   * For when `tryTake` finds none: resolves with whether a slot became free in time and before the signal was aborted.
   */
  take(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#waiters.wait(timeoutMs, signal);
  }

  give(): void {
    if (!this.#waiters.notifyFirst()) this.#free += 1;
  }

  /** Ends all waiting. */
  endWaits(): void {
    this.#waiters.notifyAll(false);
  }
}

/** Work that `close` waits for, whether or not its caller still does. */
export class Underway {
  readonly #waiters = new Waiters();
  #count = 0;

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) this.#waiters.notifyAll(true);
    }
  }

  /** Resolves when nothing is under way, or else after the time. */
  async idleWithin(ms: number): Promise<void> {
    if (this.#count > 0) await this.#waiters.wait(ms);
  }
}

/** After what has arrived meanwhile, where the runtime knows such a moment. */
export function soon(callback: () => void): void {
  if (typeof setImmediate === 'function') setImmediate(callback);
  else setTimeout(callback, 0);
}

export type Backoff = { readonly baseMs: number; readonly maxMs: number };

/**
 * Exponential with full jitter: clients that lost the gateway at the same moment do not all return at the same moment.
 */
export function backoffMs(attempt: number, { baseMs, maxMs }: Backoff): number {
  return Math.random() * Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
}

/** Sleeps that all end at once when there is nothing left to wait for. */
export class Sleeper {
  readonly #asleep = new Waiters();
  #isOver = false;

  /** Resolves after the time, or earlier when woken or when the signal is aborted; at once after `end`. */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!this.#isOver) await this.#asleep.wait(ms, signal);
  }

  wakeAll(): void {
    this.#asleep.notifyAll(true);
  }

  end(): void {
    this.#isOver = true;
    this.wakeAll();
  }
}
