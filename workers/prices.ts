/** Entry of the thread that has the table of prices. */
import { parentPort } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runPriceThread } from '../src/threads/prices/price-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runPriceThread(parentPort);
