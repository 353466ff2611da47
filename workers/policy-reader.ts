/** Entry of the thread that reads policies. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { type PolicyReading, runPolicyReader } from '../src/threads/main/policy-reader.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
await runPolicyReader(parentPort, workerData as PolicyReading);
