/** Entry of the thread that makes the calls of webhooks. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runWebhookThread, type WebhookThreadOptions } from '../src/threads/webhooks/webhook-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runWebhookThread(parentPort, workerData as WebhookThreadOptions);
