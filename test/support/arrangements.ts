/** The arrangements of the gateway's threads, for suites that must hold in each (ARCHITECTURE.md, Between threads). */
export const ARRANGEMENTS = [
  { arrangement: 'doors in the main thread', env: { SVC_IO_THREADS: '0' } },
  { arrangement: 'doors in two I/O threads', env: { SVC_IO_THREADS: '2' } },
] as const;
