/**
 * Loaded into a gateway under test with --import: it gets SIGTERM as soon as the file $SIGNAL_WHEN is there. From
 * within, since a test that looks from outside may be held up until the gateway has long started.
 */
import { existsSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const look = setInterval(() => {
    if (!existsSync(process.env.SIGNAL_WHEN)) return;
    clearInterval(look);
    process.kill(process.pid, 'SIGTERM');
  }, 2);
}
