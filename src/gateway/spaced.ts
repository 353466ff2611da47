/**
 * Work that many may ask for at the same time: it is done once for all of them, one run at a time, and the next begins only when
 * `pause`, called as the one before begins, has resolved. Whoever asks gets what comes of a run that begins after it asked.
 */
export function spaced<T>(pause: () => Promise<unknown>, work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let free: Promise<unknown> = Promise.resolve();
  return () => (next ??= free.then(() => {
    next = undefined;
    const run = work();
    free = Promise.allSettled([run, pause()]);
    return run;
  }));
}
