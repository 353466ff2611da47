/**
 * Reads policies in a thread of its own: parsing the YAML of thousands of rules takes seconds, and no check may wait
 * for it.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { ok, type Result } from '../../core/base/result.ts';
import type { Steps } from '../../core/base/steps.ts';
import {
  compilingRead,
  type LoadedPolicies,
  type PolicyFileProblem,
  type ReadPolicies,
  readPolicyFiles,
  readPolicyTexts,
} from '../../policy-files/policy-file.ts';
import { fingerprint } from '../../policy-files/policy-watch.ts';
import type { PolicyText } from '../../ports/cluster.ts';
import { startThread } from '../../system/thread.ts';
import { lowerOwnPriority } from '../../system/thread-priority.ts';

/** How long one slice of long work on the main thread may delay a check. */
const SLICE_MS = 0.5;
/** A turn of the event loop that takes longer had something to do. */
const IDLE_TURN_MS = 0.1;
/** While there is something else to do, this much time is left for it after each slice. */
const REST_MS = 1;

/** Does all steps, and in between whatever else is due. While checks arrive, they get most of the time. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let endMs = performance.now() + SLICE_MS; ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() < endMs) continue;
    const fromMs = performance.now();
    await nextTurn();
    if (performance.now() - fromMs > IDLE_TURN_MS) await sleep(REST_MS);
    endMs = performance.now() + SLICE_MS;
  }
}

/** Files to read, or what was read of them elsewhere. */
export type PolicyReading = { readonly path: string } | { readonly texts: readonly PolicyText[] };
type Reply = Result<ReadPolicies, readonly PolicyFileProblem[]>;
/** `fingerprint`: of the files as they were read. */
type WholeRead = { readonly read: Reply; readonly fingerprint: string };

const NICE_STEPS = 5;

/** The whole life of the thread: it reads once, answers, and ends. */
export async function runPolicyReader(main: MessagePort, reading: PolicyReading): Promise<void> {
  lowerOwnPriority(NICE_STEPS);
  const read =
    'path' in reading ? await readWhole(reading.path) : { read: readPolicyTexts(reading.texts), fingerprint: '' };
  main.postMessage(read satisfies WholeRead);
}

/** Files that keep changing are read as they are; the watcher reports them once they settle. */
const MOST_READS = 5;

/**
 * Reads again what has changed meanwhile: of a set that is swapped at this moment some files would be old and some new.
 */
export async function readWhole(path: string): Promise<WholeRead> {
  for (let reads = 1; ; reads += 1) {
    const before = await fingerprint(path);
    const read = await readPolicyFiles(path);
    if (reads === MOST_READS || (await fingerprint(path)) === before) return { read, fingerprint: before };
  }
}

/**
 * Like `loadPolicies`. Compiling stays in this thread, because it creates functions. Rejects if the reading thread
 * cannot be started or dies. That thread keeps the process alive on purpose: Node.js does not exit while a thread waits
 * for a file anyway, and only a live process can still be ended by a signal.
 * `onRead` gets the fingerprint of what was read, valid or not. An abort ends the thread, and so rejects.
 */
export async function loadPoliciesInThread(
  reading: PolicyReading,
  onRead: (fingerprint: string) => void = () => undefined,
  signal?: AbortSignal,
): Promise<Result<LoadedPolicies, readonly PolicyFileProblem[]>> {
  const { read, fingerprint: readAs } = await new Promise<WholeRead>((resolve, reject) => {
    const worker = startThread<WholeRead>({ entry: 'policy-reader', workerData: reading }, resolve, (ended) => {
      signal?.removeEventListener('abort', end);
      reject(ended);
    });
    const end = (): void => void worker.terminate();
    signal?.addEventListener('abort', end);
  });
  onRead(readAs);
  return read.ok ? ok(await inSlices(compilingRead(read.value))) : read;
}
