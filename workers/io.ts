/** Entry of an I/O thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runIoThread } from '../src/threads/io/io-thread.ts';
import type { IoStart } from '../src/threads/protocol.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
await runIoThread(parentPort, workerData as IoStart);
