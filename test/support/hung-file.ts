/**
 * A write lease (fcntl(2)): whoever opens the file waits until its holder has gone, at most 45 s. It is told of that.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

const HOLD = `
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: os.write(1, b'asked'))
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.write(1, b'held')
sys.stdin.read()
`;

/**
 * From now on until `answer`, or the end of the test, opening this file takes as long as on a network disk that is
 * lost; `asked`: somebody tries to. Undefined where that cannot be had.
 */
export async function hang(
  path: string,
  onceOver = onTestFinished,
): Promise<{ answer(): Promise<void>; readonly asked: Promise<unknown> } | undefined> {
  const holder = spawn('python3', ['-c', HOLD, path], { stdio: ['pipe', 'pipe', 'ignore'] });
  const gone = once(holder, 'close').catch(() => undefined); // there is no such program
  const answer = async (): Promise<void> => {
    holder.kill('SIGKILL');
    await gone;
  };
  onceOver(answer);
  const held = await Promise.race([once(holder.stdout, 'data'), gone.then(() => undefined)]);
  return held === undefined ? undefined : { answer, asked: once(holder.stdout, 'data') };
}
