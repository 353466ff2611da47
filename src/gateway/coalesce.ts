/**
 * Makes one run of `work` of all calls at the same time, and limits how often it runs. Runs do not overlap, and the next begins
 * only once the `pause` that began with the one before is over. Each caller gets the result of a run that began after it asked.
 */
export function coalesce<T>(pause: () => Promise<unknown>, work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let free: Promise<unknown> = Promise.resolve();
  return () => (next ??= free.then(() => {
    next = undefined;
    const run = work();
    free = Promise.allSettled([run, pause()]);
    return run;
  }));
}
