import { defineConfig } from 'vitest/config';

const HOURS_MS = 60 * 60_000;

/**
 * Runs tests of minutes to hours, one after the other: each has the machine to itself. The properties are those of
 * `npm test`, with other inputs and many more of them.
 */
export default defineConfig({
  test: {
    name: 'soak',
    include: ['test/soak/**/*.test.ts', 'test/core/**/*.test.ts', 'test/**/*.property.test.ts'],
    env: { SVC_TEST_SOAK: '1' },
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
