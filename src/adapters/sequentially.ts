/**
 * Runs the work for one item after the other, and returns all results. For files, running all at once would take a
 * descriptor each and, on a file system that hangs, every thread of Node.js' pool, which the store and password hashing
 * need too.
 */
export async function sequentially<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}
