import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { quarantine } from './test/support/quarantine.ts';

/** Minutes, most of which they wait: each is begun before all others, so that none is left over at the end. */
const SLOWEST = [
  'test/sdk/python.test.ts',
  'test/stores/trial-postgres/trial-postgres.test.ts',
  'test/e2e/crash.test.ts',
  'test/e2e/cluster/gateways.test.ts',
  'test/docs/policy-rollout.test.ts',
  'test/docs/install.test.ts',
];

/** The smaller, the earlier: the slowest files, those that start the command, databases or a compiler, all others. */
function turnOf({ moduleId, project }: TestSpecification): number {
  // Last, because the process of a worker ends when the next file is one of these.
  if (project.name === 'alone') return SLOWEST.length + 2;
  const place = SLOWEST.findIndex((path) => moduleId.endsWith(`/${path}`));
  if (place !== -1) return place;
  return SLOWEST.length + (/\/test\/(?:(?:e2e|web|cli|sdk)\/|[^/]+$)/.test(moduleId) ? 0 : 1);
}

/** The slow files first: at the end, where one worker may have to wait for another, those that are left are short. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => turnOf(one) - turnOf(other));
  }
}

/** Minutes, or compilers that fetch what they need: vitest.soak.config.ts, vitest.languages.config.ts. */
const SOAKS = 'test/{soak,languages}/**';
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
      { extends: true, test: { name: 'alone', include: ALONE, exclude: excluded } },
      {
        extends: true,
        test: {
          // A process runs many, with one browser: to start it and to load the gateway takes longer than most files do.
          name: 'together',
          include: ['test/**/*.test.ts', 'web/test/**/*.test.{ts,tsx}'],
          exclude: [...excluded, ...ALONE],
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
    // Two cores, and tests that wait for processes, timers and disks: with four, a quarter of the time of both is not used.
    maxWorkers: 6,
  },
});
