/** Entry of the thread that decides recorded checks again. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { type ReplayThreadOptions, runReplayThread } from '../src/threads/replay/replay-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
runReplayThread(parentPort, workerData as ReplayThreadOptions);
