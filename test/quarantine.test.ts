/** The list of tests that wait for a repair cannot hide more than it says. */
import { describe, expect, test } from 'vitest';
import { quarantineOf } from './support/quarantine.ts';

describe('quarantine', () => {
  test('takes whole files and single tests, each with its issue', () => {
    const { files, tests } = quarantineOf({
      'test/tidy.test.ts': 12,
      'test/tidy.test.ts > tidy > imports run one way': 13,
    });
    expect([...files]).toEqual([['test/tidy.test.ts', 12]]);
    expect([...tests]).toEqual([['test/tidy.test.ts > tidy > imports run one way', 13]]);
  });

  test.each([[''], ['flaky'], [0], [-1], [1.5], [null], [true]])('refuses %j in place of an issue', (issue) => {
    expect(() => quarantineOf({ 'test/tidy.test.ts': issue })).toThrow('needs the number of an issue');
  });

  test('refuses a file that is gone', () => {
    expect(() => quarantineOf({ 'test/gone.test.ts > a > b': 1 })).toThrow('there is no file test/gone.test.ts');
  });
});
