import { Worker } from 'node:worker_threads';
import { workerFile } from './worker-file.ts';

export type ThreadStart = {
  /** Its entry is `workers/<entry>.ts`. */
  readonly entry: string;
  /** Its name in tools; undefined: that of the entry. */
  readonly name?: string;
  readonly workerData?: unknown;
  /** Undefined: that of the process. */
  readonly env?: NodeJS.ProcessEnv;
};

/** Why a thread is no more. */
export class ThreadEnded extends Error {
  /** The error that it did not catch; undefined: it was ended, or has ended itself. */
  readonly failure: Error | undefined;

  constructor(entry: string, code: number, failure: Error | undefined) {
    const how = failure === undefined ? `exited with code ${code}` : `failed: ${failure.message}`;
    super(`the thread workers/${entry}.js ${how}`);
    this.failure = failure;
    // The log is to say where it failed, not where that was noticed.
    if (failure?.stack !== undefined) this.stack = `${this.message}\n${failure.stack}`;
  }
}

/** Starts a thread. `onEnd` is called once, whatever it has ended by. */
export function startThread<Message>(
  { entry, name = entry, ...options }: ThreadStart,
  onMessage: (message: Message) => void,
  onEnd: (ended: ThreadEnded) => void,
): Worker {
  const worker = new Worker(workerFile(entry), { ...options, name });
  let failure: Error | undefined;
  worker.on('message', onMessage);
  worker.on('error', (error) => {
    failure ??= error;
  });
  worker.on('exit', (code) => onEnd(new ThreadEnded(entry, code, failure)));
  return worker;
}
