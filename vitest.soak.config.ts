import { defineConfig } from 'vitest/config';

const HOURS_MS = 60 * 60_000;

/** What takes minutes to hours, one after the other: each has the machine to itself. */
export default defineConfig({
  test: {
    name: 'soak',
    include: ['test/soak/**/*.test.ts'],
    globalSetup: ['test/support/stale-build.ts', 'test/support/scratch.ts'],
    setupFiles: ['test/support/own-shell.ts'],
    testTimeout: 2 * HOURS_MS,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    fileParallelism: false,
    maxWorkers: 1,
    execArgv: ['--expose-gc'],
  },
});
