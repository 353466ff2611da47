import { readFileSync } from 'node:fs';

/** The memory that a process has in RAM, in MiB; Linux only. */
export const residentMib = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
