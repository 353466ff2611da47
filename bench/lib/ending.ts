/**
 * Cleans up the processes and files of a benchmark at its end: when it is done, when it fails, and when it is
 * interrupted.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const running = new Set<() => Promise<void>>();
const folders = new Set<string>();
let hasBegun = false;

/** Whether the benchmark was asked to end: what it measures from now on means nothing. */
export const isEnding = (): boolean => hasBegun;

/** How a process is ended, and its folder removed: by who started it, or else when the benchmark ends early. */
export function endingOf(child: ChildProcess, folder?: string): () => Promise<void> {
  // A process that could not be started never exits.
  const exited = new Promise((resolve) => {
    child.once('exit', resolve).once('error', resolve);
  });
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  running.add(end);
  child.once('exit', () => running.delete(end));
  return end;
}

/** For what is no process of its own. `end` is called once, by who started it or when the benchmark ends early. */
export function endedBy(end: () => Promise<void>): () => Promise<void> {
  const once = async (): Promise<void> => {
    if (running.delete(once)) await end();
  };
  running.add(once);
  return once;
}

/** An empty folder for what nobody needs afterwards. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  folders.add(folder);
  return folder;
}

async function endEarly(status: number): Promise<void> {
  if (hasBegun) return;
  hasBegun = true;
  await Promise.allSettled([...running].map((end) => end()));
  process.exit(status);
}

if (isMainThread) {
  // Once: whoever does not want to wait interrupts a second time.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void endEarly(128 + constants.signals[signal]));
  process.on('uncaughtException', (error) => {
    // A failure because its gateway was ended is expected.
    if (!hasBegun) console.error(error);
    void endEarly(1);
  });
  // Its reader has seen enough.
  process.stdout.on('error', () => void endEarly(0));
  process.on('exit', () => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
}
