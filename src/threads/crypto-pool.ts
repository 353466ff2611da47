import type { Passwords } from '../gateway/ports.ts';
import { CryptoLane } from './crypto-lane.ts';
import type { PasswordCost } from './crypto-tasks.ts';

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
 * The thread pool in which argon2 really works is one for the whole process, shared with file system calls, name
 * look-ups and the commits of the embedded store. Two of its threads are always left to them.
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
  // One thread verifies some 15,000 tokens a second, and the I/O threads remember what it found.
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
