/** The Python package: its own tests, its types and its style, each as its tools say. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { environment, PYTHON_SDK, run } from '../support/python.ts';

const found = environment('tests', [join(PYTHON_SDK, 'requirements-test.txt')]);
if ('skipped' in found) console.warn(`\nThe tests of the Python package are skipped: ${found.skipped}`);
const python = 'python' in found ? found.python : '';

describe.skipIf(python === '')('the Python package', () => {
  test('passes its own tests, against the real gateway and its fake one', { timeout: 300_000 }, async () => {
    const { status, output } = await run(python, [
      '-m',
      'pytest',
      '-p',
      'no:cacheprovider',
      '--ignore=tests/frameworks',
    ]);
    expect(output).toMatch(/ passed/);
    expect(status, output).toBe(0);
  });

  test('has types that mypy finds no fault with, strictly', async () => {
    const { status, output } = await run(python, ['-m', 'mypy', '--cache-dir', '/dev/null']);
    expect(status, output).toBe(0);
  });

  test('is written as ruff says', async () => {
    const check = await run(python, ['-m', 'ruff', 'check', '--no-cache', 'src', 'tests']);
    expect(check.status, check.output).toBe(0);
    const format = await run(python, ['-m', 'ruff', 'format', '--no-cache', '--check', 'src', 'tests']);
    expect(format.status, format.output).toBe(0);
  });
});
