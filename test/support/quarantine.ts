/**
 * Tests that are known to fail and wait for a repair: test/quarantine.json maps a test file, or `file > test name`, to
 * the number of its issue. Files are left out by vitest.config.ts, single tests are skipped here.
 */
import { existsSync, readFileSync } from 'node:fs';
import { beforeEach } from 'vitest';

export type Quarantine = {
  readonly files: ReadonlyMap<string, number>;
  /** By file and full name: `test/core/ops/ops.test.ts > ops > expire`. */
  readonly tests: ReadonlyMap<string, number>;
};

/** Throws if an entry names no issue, or a file that is gone: the list must not outlive what it excuses. */
export function quarantineOf(list: Readonly<Record<string, unknown>>): Quarantine {
  const files = new Map<string, number>();
  const tests = new Map<string, number>();
  for (const [key, issue] of Object.entries(list)) {
    const [file = ''] = key.split(' > ', 1);
    if (!Number.isSafeInteger(issue) || Number(issue) < 1)
      throw new Error(`test/quarantine.json: ${key} needs the number of an issue, not ${JSON.stringify(issue)}`);
    if (!existsSync(new URL(`../../${file}`, import.meta.url)))
      throw new Error(`test/quarantine.json: there is no file ${file}; remove the entry`);
    (file === key ? files : tests).set(key, Number(issue));
  }
  return { files, tests };
}

export const quarantine = (): Quarantine =>
  quarantineOf(JSON.parse(readFileSync(new URL('../quarantine.json', import.meta.url), 'utf8')));

/** The setup file of each test file calls this. */
export function skipQuarantined(): void {
  const { tests } = quarantine();
  if (tests.size === 0) return;
  beforeEach(({ task, skip }) => {
    const issue = tests.get(task.fullName);
    if (issue !== undefined) skip(`in quarantine: issue ${issue}`);
  });
}
