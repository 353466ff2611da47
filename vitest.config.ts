import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/scratch.ts'],
    setupFiles: ['test/support/own-shell.ts'],
    // Deadlines, not promises: a machine that is busy with other things may take ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Tests of one file that run at once do little but wait.
    maxConcurrency: 40,
    // Two cores: more workers only make sockets and threads wait for each other.
    maxWorkers: 2,
  },
});
