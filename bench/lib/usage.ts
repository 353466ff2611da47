/** Measures the resources that a process has used so far, all its threads together; Linux only, else NaN. */
import { readdirSync, readFileSync } from 'node:fs';

export type Usage = { readonly cpuUs: number; readonly switches: number };

export function usageOf(pid: number): Usage {
  if (process.platform !== 'linux') return { cpuUs: Number.NaN, switches: Number.NaN };
  const usage = { cpuUs: 0, switches: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    usage.cpuUs += Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
    for (const [, count] of readFileSync(`${folder}/status`, 'utf8').matchAll(/voluntary_ctxt_switches:\s+(\d+)/g))
      usage.switches += Number(count);
  }
  return usage;
}
