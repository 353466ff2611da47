/** Entry of the audit thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { type AuditThreadOptions, runAuditThread } from '../src/threads/audit/audit-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runAuditThread(parentPort, workerData as AuditThreadOptions);
