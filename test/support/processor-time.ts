/**
 * What a piece of work takes of the processor, in milliseconds: a machine that is busy with other things adds nothing
 * to it, nor one that stands still.
 */
export function processorMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
