import { readlink } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import type { Passwords } from '../../ports/ports.ts';
import { CryptoLane } from './lane.ts';
import type { PasswordCost } from './tasks.ts';

// Lowers the priority of the threads on which argon2 computes, in favour of those that answer checks.

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

/** Signature tasks that may wait: as many as are done in a quarter of a second. */
const MAX_TOKEN_QUEUE = 4096;

export type CryptoPoolOptions = {
  /** Threads for passwords (SVC_CRYPTO_THREADS); see `passwordThreads`. */
  readonly threads: number;
  readonly cost: PasswordCost;
  /** UV_THREADPOOL_SIZE of this process. */
  readonly uvThreads: number;
  /** Password tasks that may wait (SVC_CRYPTO_QUEUE). At 30 ms each, 64 on one thread is a wait of two seconds. */
  readonly maxPasswordQueue: number;
  readonly onError: (message: string, cause: string) => void;
  /** These two are for tests. */
  readonly timeoutMs?: number;
  readonly filename?: string;
};

/**
 * The thread pool in which argon2 really works is one for the whole process, shared with file system calls and name
 * look-ups. Two of its threads are always left to them.
 */
export const passwordThreads = (threads: number, uvThreads: number): number =>
  Math.max(1, Math.min(threads, uvThreads - 2));

export type CryptoPool = {
  readonly passwords: Passwords;
  /** The lane of JWT signatures, kept apart from passwords so that a storm of logins delays no verification. */
  readonly tokenLane: CryptoLane;
  /** Tasks waiting or worked on, per lane: for metrics. */
  pending(): { readonly passwords: number; readonly tokens: number };
  /** Threads started in place of others. */
  restarts(): number;
  close(): Promise<void>;
};

/** Starts the crypto threads: one lane for argon2id, one for token signatures, each with its own bounded queue. */
export function createCryptoPool({
  threads,
  cost,
  uvThreads,
  maxPasswordQueue,
  onError,
  timeoutMs = 10_000,
  filename,
}: CryptoPoolOptions): CryptoPool {
  const shared = { timeoutMs, onError, filename };
  const passwordLane = new CryptoLane({
    ...shared,
    what: 'password hashing',
    threads: passwordThreads(threads, uvThreads),
    maxQueue: maxPasswordQueue,
    maxBatch: 1,
    whenLate: 'wait-for-thread',
  });
  // A single thread verifies some 15,000 tokens a second, and the I/O threads remember its results.
  const tokenLane = new CryptoLane({
    ...shared,
    what: 'token verification',
    threads: 1,
    maxQueue: MAX_TOKEN_QUEUE,
    maxBatch: 32,
    whenLate: 'replace-thread',
  });
  return {
    passwords: {
      hash: (password) => passwordLane.run({ type: 'hash-password', password, cost }),
      verify: (hash, password) => passwordLane.run({ type: 'verify-password', hash, password, cost }),
    },
    tokenLane,
    pending: () => ({ passwords: passwordLane.pending, tokens: tokenLane.pending }),
    restarts: () => passwordLane.restarts + tokenLane.restarts,
    close: async () => {
      await Promise.all([passwordLane.close(), tokenLane.close()]);
    },
  };
}
