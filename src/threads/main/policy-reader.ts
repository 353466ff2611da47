import { setImmediate as nextTurn } from 'node:timers/promises';
/**
 * Reads policies in a thread of its own: parsing the YAML of thousands of rules takes seconds, and no check may wait
 * for it.
 */
import { type MessagePort, Worker } from 'node:worker_threads';
import { ok, type Result } from '../../core/base/result.ts';
import type { Steps } from '../../core/base/steps.ts';
import {
  compilingRead,
  type LoadedPolicies,
  type PolicyFileProblem,
  type ReadPolicies,
  readPolicyFiles,
} from '../../policy-files/policy-file.ts';
import { fingerprint } from '../../policy-files/policy-watch.ts';
import { workerFile } from '../worker-file.ts';

/** How long one slice of long work on the main thread may delay a check. */
const SLICE_MS = 2;

/** Does all steps, and in between whatever else is due. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let endMs = performance.now() + SLICE_MS; ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() < endMs) continue;
    await nextTurn();
    endMs = performance.now() + SLICE_MS;
  }
}

export type PolicyReading = { readonly path: string };
type Reply = Result<ReadPolicies, readonly PolicyFileProblem[]>;

/** The whole life of the thread: it reads once, answers, and ends. */
export async function runPolicyReader(main: MessagePort, { path }: PolicyReading): Promise<void> {
  main.postMessage((await readWhole(path)) satisfies Reply);
}

/** Files that keep changing are read as they are; the watcher reports them once they settle. */
const MOST_READS = 5;

/** Reads again if files changed meanwhile: a set that is swapped during the read would be half old and half new. */
export async function readWhole(path: string): Promise<Reply> {
  for (let reads = 1; ; reads += 1) {
    const before = await fingerprint(path);
    const read = await readPolicyFiles(path);
    if (reads === MOST_READS || (await fingerprint(path)) === before) return read;
  }
}

/**
 * Like `loadPolicies`. Compiling stays in this thread, because it creates functions. Rejects if the reading thread
 * cannot be started or dies. That thread keeps the process alive on purpose: Node.js does not exit while a thread waits
 * for a file anyway, and only a live process can still be ended by a signal.
 */
export async function loadPoliciesInThread(
  path: string,
): Promise<Result<LoadedPolicies, readonly PolicyFileProblem[]>> {
  const read = await new Promise<Reply>((resolve, reject) => {
    const worker = new Worker(workerFile('policy-reader'), {
      workerData: { path } satisfies PolicyReading,
      name: 'policy-reader',
    });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the policy reader thread exited with ${code}`)));
  });
  return read.ok ? ok(await inSlices(compilingRead(read.value))) : read;
}
