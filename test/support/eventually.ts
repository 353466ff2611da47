import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until the expectation holds; fails with its last complaint after the deadline. */
export async function eventually<T>(expectation: () => T | Promise<T>, deadlineMs = 60_000): Promise<T> {
  const end = Date.now() + deadlineMs;
  for (;;) {
    try {
      return await expectation();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(20);
    }
  }
}
