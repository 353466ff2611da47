import { totalmem } from 'node:os';

const MIB = 1024 * 1024;

/** The memory this process may use, in MiB: that of the machine, or less where a container has a limit. */
export function usableMemoryMib(
  ofMachine = totalmem(),
  limit: number | undefined = process.constrainedMemory(),
): number {
  // Without a limit it is undefined, 0, or more than any machine has, depending on the Node.js release and the kernel.
  return Math.floor(Math.min(ofMachine, limit || ofMachine) / MIB);
}
