/** Reads policies in a thread of its own: parsing the YAML of thousands of rules takes seconds, and no check may wait for it. */
import { Worker, type MessagePort } from 'node:worker_threads';
import { compilingRead, readPolicyFiles, type LoadedPolicies, type PolicyFileProblem, type ReadPolicies } from '../adapters/policy-file.ts';
import { fingerprint } from '../adapters/policy-fingerprint.ts';
import { ok, type Result } from '../core/result.ts';
import { inSlices } from './slices.ts';
import { workerFile } from './worker-file.ts';

export type PolicyReading = { readonly path: string };
type Reply = Result<ReadPolicies, readonly PolicyFileProblem[]>;

/** The whole life of the thread: it reads once, answers, and ends. */
export async function runPolicyReader(main: MessagePort, { path }: PolicyReading): Promise<void> {
  main.postMessage(await readWhole(path) satisfies Reply);
}

/** Files that never rest are read as they are; whoever watches them hears of it once they do. */
const MOST_READS = 5;

/** Reads again what has changed meanwhile: of a set that is swapped at this moment some files would be old and some new. */
export async function readWhole(path: string): Promise<Reply> {
  for (let reads = 1; ; reads += 1) {
    const before = await fingerprint(path);
    const read = await readPolicyFiles(path);
    if (reads === MOST_READS || (await fingerprint(path)) === before) return read;
  }
}

/**
 * As `loadPolicies`. Compiling cannot move to another thread, because it creates functions. Rejects when the thread cannot be started or dies. The process stays up for it: Node.js does not end while a
 * thread waits for a file, and only as long as it runs can it be ended all the same.
 */
export async function loadPoliciesAside(path: string): Promise<Result<LoadedPolicies, readonly PolicyFileProblem[]>> {
  const read = await new Promise<Reply>((resolve, reject) => {
    const worker = new Worker(workerFile('policy-reader'), { workerData: { path } satisfies PolicyReading, name: 'policy-reader' });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread that reads policies ended with ${code}`)));
  });
  return read.ok ? ok(await inSlices(compilingRead(read.value))) : read;
}
