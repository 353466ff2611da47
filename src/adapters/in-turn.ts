/**
 * What the work comes to for each, begun when the one before has ended. Of files, all at once would take a descriptor each, and on
 * a file system that hangs every thread that Node.js has for files, those of the store and of password hashes with them.
 */
export async function inTurn<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}
