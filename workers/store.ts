/** Entry of the thread that writes the embedded store. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runStoreWriter } from '../src/stores/embedded/writer.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runStoreWriter(parentPort, workerData as string);
