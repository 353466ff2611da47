/** Entry of the thread that sends the audit log to its sinks. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runSinksThread, type SinkThreadOptions } from '../src/threads/audit-sinks/sinks-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runSinksThread(parentPort, workerData as SinkThreadOptions);
