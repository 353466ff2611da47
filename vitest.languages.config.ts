import { defineConfig } from 'vitest/config';

/** The examples in other languages: `npm run test:frameworks -- go java`. Their compilers fetch what they need. */
export default defineConfig({
  test: {
    name: 'languages',
    include: ['test/languages/**/*.test.ts'],
    globalSetup: ['test/support/scratch.ts'],
    testTimeout: 600_000,
    maxWorkers: 1,
  },
});
