/** Entry of the thread that sends traces, metrics and logs to a collector. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../src/core/base/result.ts';
import { runTelemetryThread, type TelemetryThreadOptions } from '../src/threads/telemetry/telemetry-thread.ts';

assert(parentPort !== null, 'this file is the entry of a worker thread');
await runTelemetryThread(parentPort, workerData as TelemetryThreadOptions);
