/** Entry of the thread that reads the audit log. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { type AuditReaderOptions, runAuditReaderThread } from '../src/threads/audit/reader-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runAuditReaderThread(parentPort, workerData as AuditReaderOptions);
