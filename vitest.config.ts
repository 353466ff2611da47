import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/own-shell.ts'],
    // Deadlines, not promises: a machine that is busy with other things may take ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    // Two cores: more workers only make sockets and threads wait for each other.
    maxWorkers: 2,
  },
});
