import { describe, expect, test } from 'vitest';
import { environmentFrom } from '../../bench/lib/environment.ts';

describe('environment', () => {
  test("a benchmark never opens the database or policies of the shell's gateway", () => {
    const shell = {
      PATH: '/usr/bin',
      TMPDIR: '/var/tmp',
      SVC_DATABASE_URL: 'postgres://gateway@db/gateway',
      SVC_POLICY_PATH: 'policies',
      SVC_IO_THREADS: '2',
      SVC_AUDIT_FSYNC: 'always',
    };
    expect(environmentFrom(shell)).toEqual({
      PATH: '/usr/bin',
      TMPDIR: '/var/tmp',
      SVC_IO_THREADS: '2',
      SVC_AUDIT_FSYNC: 'always',
    });
  });
});
