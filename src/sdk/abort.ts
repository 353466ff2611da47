/** Support for callers that abort their wait. */

/** What every call but `close` takes last. */
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
 * Settles with the promise, or rejects with the signal's reason before, right after `onLeft`: nobody hears then how the
 * promise settles.
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
