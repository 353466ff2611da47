/**
 * Lets concurrent calls share one run of `work`. Each gets the result of a run that began after it asked. Runs do
 * not overlap, and between the beginnings of two there is at least the `pause`.
 */
export function coalesce<T>(pause: () => Promise<unknown>, work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let free: Promise<unknown> = Promise.resolve();
  return () =>
    (next ??= free.then(() => {
      next = undefined;
      const run = work();
      free = Promise.allSettled([run, pause()]);
      return run;
    }));
}
