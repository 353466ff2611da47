/** The Python package: its own tests, its types and its style, each as its tools say, and what is packed of it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { packedFolder } from '../support/packed.ts';
import { environment, PACKER, PYTHON_SDK, pipInto, run } from '../support/python.ts';

const packages = await packedFolder();
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
    const { status, output } = await run(python, [
      '-m',
      'mypy',
      '--cache-dir',
      join(PACKAGE_ROOT, 'dist', 'python', 'types'),
    ]);
    expect(status, output).toBe(0);
  });

  test('passes ruff, and so do the examples', async () => {
    const places = ['--config', 'pyproject.toml', 'src', 'tests', '../../examples/python'];
    const check = await run(python, ['-m', 'ruff', 'check', '--no-cache', ...places]);
    expect(check.status, check.output).toBe(0);
    const format = await run(python, ['-m', 'ruff', 'format', '--no-cache', '--check', ...places]);
    expect(format.status, format.output).toBe(0);
  });

  test('is packed as a wheel and an sdist, which pip installs as the documents say', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-wheel-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    symlinkSync(packages, join(folder, 'artifacts'));
    const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    expect(readdirSync(join(folder, 'artifacts')).filter((name) => name.startsWith('svc_gateway'))).toEqual([
      `svc_gateway-${version}-py3-none-any.whl`,
      `svc_gateway-${version}.tar.gz`,
    ]);
    const line = /^pip install \S+/m.exec(readFileSync(join(PACKAGE_ROOT, 'docs', 'sdk-python.md'), 'utf8'))?.[0];
    const code =
      'import svc_gateway, pathlib; print(svc_gateway.__version__, (pathlib.Path(svc_gateway.__file__).parent / "py.typed").exists())';
    const venv = join(folder, 'env');
    const pip = `#!/bin/sh\nshift\nexec ${[PACKER, ...pipInto(venv)].map((word) => `'${word}'`).join(' ')} "$@"\n`;
    execFileSync('python3', ['-m', 'venv', '--without-pip', venv]);
    writeFileSync(join(venv, 'bin', 'pip'), pip, { mode: 0o755 });
    const lines = `export PATH=$PWD/env/bin:$PATH; ${line} --quiet --no-index; python -c '${code}'`;
    const typed = spawnSync('bash', ['-ec', lines], { cwd: folder, encoding: 'utf8' });
    expect({ output: typed.stdout, errors: typed.stderr.replace(/^\[notice\].*\n?|^\n/gm, '') }).toEqual({
      output: `${version} True\n`,
      errors: '',
    });
  });
});
