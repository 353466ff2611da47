import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

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
