/** Lowers the priority of the threads on which argon2 computes, in favour of those that answer checks. */
import { readlink } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';

/** Steps of `nice` below the process: a third of the processor time of any other thread, where they compete. */
const STEPS = 5;
const LOWEST = 19;
const ROUNDS = 8;

/**
 * argon2 runs on libuv's thread pool, in whichever of its threads is free, so all of them are given less priority. A
 * hash takes 30 ms in one piece, and on a busy processor a check would wait for a whole time slice of it. On Linux
 * only: elsewhere a single thread has no priority of its own, or does not learn its number. There, and where it is
 * forbidden, hashes compete with checks.
 */
export async function lowerPoolPriority(poolThreads: number): Promise<void> {
  if (process.platform !== 'linux') return;
  const threads = await threadsOf(poolThreads);
  try {
    const priority = Math.min(getPriority() + STEPS, LOWEST);
    for (const thread of threads) setPriority(thread, priority);
  } catch {
    // Forbidden, as some sandboxes do: hashing works all the same.
  }
}

/**
 * The ids of the pool's threads. Each link is read by one of them and names its reader; more links are read than there
 * are threads, so that all turn up.
 */
async function threadsOf(poolThreads: number): Promise<Iterable<number>> {
  const threads = new Set<number>();
  for (let round = 0; round < ROUNDS && threads.size < poolThreads; round += 1) {
    const links = await Promise.allSettled(
      Array.from({ length: 8 * poolThreads }, () => readlink('/proc/thread-self')),
    );
    for (const link of links) if (link.status === 'fulfilled') threads.add(Number(link.value.split('/').at(-1)));
  }
  return threads;
}
