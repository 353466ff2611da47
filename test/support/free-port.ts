import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Even in one of two files that run side by side, odd in the other, and none twice.
let last = 2 * randomInt(5_000, 14_000) + (Number(process.env.VITEST_POOL_ID ?? 0) % 2);

/**
 * A port on loopback that nothing else takes, also while what listens on it is away: below those which the system gives
 * out by itself.
 */
export async function freePort(): Promise<number> {
  const port = (last += 2);
  const server = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
  return isFree ? port : freePort();
}
