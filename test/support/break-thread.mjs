/**
 * Loaded into a gateway under test with --import, and so into each of its threads: a thread dies of an exception that
 * nobody catches as soon as a file with its kind as name lies in $BREAK_DIR, and stands still while one `<kind>.pause`
 * does, `<kind>.paused` beside it once it does so. A crypto thread, which never comes to its timers, ends over the next
 * signature. A starting thread takes `<kind>.hold` away, and comes no further. The audit thread dies once it has
 * written and counted the next entries, before it notifies anybody, while `audit.counted` lies there, and the main
 * thread, where it writes the log itself, fails over the next entry for `audit.write`.
 */
import crypto from 'node:crypto';
import { existsSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { isMainThread, workerData } from 'node:worker_threads';

const kindOf = (data) => {
  if (typeof data === 'string') return 'store';
  if (data?.counters !== undefined) return 'audit';
  if (data?.auditCounters !== undefined) return 'io';
  if (data?.path !== undefined) return 'policy-reader';
  return data?.directory !== undefined ? 'audit-reader' : 'crypto';
};

/** The doors are in the main thread. */
const hasDoors = isMainThread && process.env.SVC_IO_THREADS === '0';

if (!isMainThread || hasDoors) {
  const order = join(process.env.BREAK_DIR, hasDoors ? 'io' : kindOf(workerData));
  const rest = new Int32Array(new SharedArrayBuffer(4));
  if (existsSync(`${order}.hold`)) {
    unlinkSync(`${order}.hold`);
    Atomics.wait(rest, 0, 0);
  }
  setInterval(() => {
    if (existsSync(`${order}.pause`)) {
      writeFileSync(`${order}.paused`, '');
      while (existsSync(`${order}.pause`)) Atomics.wait(rest, 0, 0, 5);
      rmSync(`${order}.paused`, { force: true });
    }
    if (!existsSync(order)) return;
    try {
      unlinkSync(order);
    } catch {
      return;
    } // another thread of the kind was first
    throw new Error('broken by a test');
  }, 5).unref();

  const { notify } = Atomics;
  Atomics.notify = (...parts) => {
    if (order.endsWith('audit') && existsSync(`${order}.counted`)) {
      unlinkSync(`${order}.counted`);
      throw new Error('broken by a test');
    }
    return notify(...parts);
  };

  const { hash } = crypto;
  const write = join(process.env.BREAK_DIR, 'audit.write');
  crypto.hash = (...parts) => {
    if (hasDoors && parts[0] === 'sha256' && existsSync(write)) {
      unlinkSync(write);
      throw new Error('broken by a test');
    }
    return hash(...parts);
  };

  const { sign } = crypto;
  crypto.sign = (...parts) => {
    if (existsSync(order)) {
      unlinkSync(order);
      process.exit(1);
    }
    return sign(...parts);
  };
  syncBuiltinESMExports();
}
