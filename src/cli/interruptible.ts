const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * While it works, a signal that would end the process aborts the work instead, so that its outcome can be reported. A
 * second one ends it.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const signal of ENDING_SIGNALS) process.once(signal, interrupt);
  try {
    return await work(interrupted.signal);
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
  }
}
