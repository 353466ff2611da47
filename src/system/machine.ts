import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../core/base/text.ts';

/** Whether a process with this id exists, even one of another user. */
export function isProcess(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

const MIB = 1024 * 1024;

/** The memory this process may use, in MiB: that of the machine, or less where a container has a limit. */
export function usableMemoryMib(
  ofMachine = totalmem(),
  limit: number | undefined = process.constrainedMemory(),
): number {
  // Without a limit it is undefined, 0, or more than any machine has, depending on the Node.js release and the kernel.
  return Math.floor(Math.min(ofMachine, limit || ofMachine) / MIB);
}

/** How many files and connections this process may have open. Node.js raises the limit as far as it may. */
export function mostOpenFiles(limits = textOf('/proc/self/limits')): number {
  return Number(/^Max open files +(\d+)/m.exec(limits ?? '')?.[1] ?? Infinity);
}

const CGROUP = '/sys/fs/cgroup';

/**
 * The cores this process may use: those of the machine, or fewer if the container has a CPU limit, which Node.js 20
 * ignores. Part of a core beyond the first does not count, as in later releases of Node.js.
 */
export function usableCores(ofMachine = availableParallelism(), cgroup = CGROUP): number {
  // Version 2 of the kernel's control groups, else version 1. No limit is the word `max`, or −1.
  const [quota, period] = textOf(join(cgroup, 'cpu.max'))?.split(' ') ?? [
    textOf(join(cgroup, 'cpu/cpu.cfs_quota_us')),
    textOf(join(cgroup, 'cpu/cpu.cfs_period_us')),
  ];
  const limit = Number(quota) / Number(period);
  return limit > 0 ? Math.min(ofMachine, Math.max(1, Math.floor(limit))) : ofMachine;
}

/** Undefined where there is no such control group. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}
