import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { quarantine } from './test/support/quarantine.ts';

/** Finds the tests that start the command, databases or a compiler. */
const startsProcesses = ({ moduleId }: TestSpecification): boolean =>
  /\/test\/(?:(?:e2e|web|cli|sdk)\/|[^/]+$)/.test(moduleId);

/** The slow files first: at the end, where one worker may have to wait for another, those that are left are short. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort(
      (one, other) => Number(startsProcesses(other)) - Number(startsProcesses(one)),
    );
  }
}

/** Their files start nothing and change nothing of the process, so many share one: to start a process takes longer. */
const UNIT = [
  ...['core', 'limits', 'credentials', 'accounts', 'use-cases', 'policy-files'].map(
    (folder) => `test/${folder}/**/*.test.ts`,
  ),
  'web/test/**/*.test.{ts,tsx}',
];
/** Minutes, or compilers that fetch what they need: vitest.soak.config.ts, vitest.languages.config.ts. */
const SOAKS = 'test/{soak,languages}/**';
/** Their files start what they test, and leave nothing behind: one process runs many, with one browser. */
const CLIENTS = ['cli', 'web'].map((folder) => `test/${folder}/**/*.test.ts`);
/** The same, apart from a browser: some count what is left in memory. */
const SDK = ['test/sdk/**/*.test.ts'];
/** A process for each file: they replace modules of Node.js, or measure the memory that the process has. */
const ALONE = [
  'test/audit-log/{disk,export}.test.ts',
  'test/doors/grpc/{heads,strangers,unary}.test.ts',
  'test/simulation/**/*.test.ts',
  'test/threads/op-memory.test.ts',
];
const excluded = [...configDefaults.exclude, SOAKS, ...quarantine().files.keys()];

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: 'unit', include: UNIT, exclude: excluded, isolate: false } },
      { extends: true, test: { name: 'clients', include: CLIENTS, exclude: excluded, isolate: false } },
      { extends: true, test: { name: 'sdk', include: SDK, exclude: excluded, isolate: false } },
      { extends: true, test: { name: 'alone', include: ALONE, exclude: excluded } },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          exclude: [...excluded, ...UNIT, ...CLIENTS, ...SDK, ...ALONE],
          isolate: false,
        },
      },
    ],
    globalSetup: ['test/support/stale-build.ts', 'test/support/scratch.ts', 'test/support/database-server.ts'],
    setupFiles: ['test/support/own-shell.ts'],
    // Deadlines, not promises: a machine that is busy with other things may take ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    sequence: { sequencer: SlowFirst },
    // Tests of one file that run at once do little but wait.
    maxConcurrency: 40,
    // Two cores, and tests that wait for processes, timers and disks: with three, a quarter of the time of both is not used.
    maxWorkers: 4,
  },
});
