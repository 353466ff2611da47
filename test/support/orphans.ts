/**
 * Ends what a test has started, when the process of the test is gone without having done so: killed, it runs no
 * clean-up.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/** SIGTERM, as for any end of it; and what does not heed that within half a minute is killed. */
const END =
  'kill -TERM "$1"; kill -CONT "$1"; for _ in $(seq 60); do kill -0 "$1" || exit; sleep 0.5; done; kill -KILL "$1"';

export function endIfOrphaned(child: ChildProcess): void {
  if (child.pid === undefined) return;
  child.once('exit', onceOrphaned(END, String(child.pid)));
}

/** Runs a command of the shell once this process is gone, unless the returned function has been called. */
export function onceOrphaned(command: string, ...args: readonly string[]): () => void {
  // Its standard input ends with this process. Detached: Ctrl-C is meant for the tests, and it outlives them by what it
  // has to do.
  const watcher = spawn('sh', ['-c', `read -r _; ${command}`, 'sh', ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return () => void watcher.kill('SIGKILL');
}
