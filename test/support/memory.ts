import { readFileSync } from 'node:fs';

/** The memory that a process has in RAM, in MiB; Linux only. */
export const residentMib = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** How many files and connections this process may have open; Linux only. */
export const mostFiles = (): number =>
  Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Number.POSITIVE_INFINITY);
