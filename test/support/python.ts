/** Python for tests: a virtual environment under the build folder, and what is missing where there can be none. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

export const PYTHON_SDK = join(PACKAGE_ROOT, 'sdk', 'python');

export type PythonRun = { readonly status: number; readonly output: string };

/** Python 3.10 or later, or the reason why there is none. */
const PYTHON = spawnSync('python3', ['-c', 'import sys, venv, ensurepip; print(sys.version_info >= (3, 10))'], {
  encoding: 'utf8',
});

/** Why the tests in Python cannot run; undefined where they can. */
function missing(): string | undefined {
  if (PYTHON.error !== undefined) return 'python3 is not installed';
  if (PYTHON.status !== 0) return 'python3 has no venv (Debian: apt-get install python3-venv)';
  return PYTHON.stdout.trim() === 'True' ? undefined : 'python3 is older than 3.10';
}

/** The Python that packs, as `packedFolder` leaves it: its pip serves others too, as to install pip takes seconds. */
export const PACKER = join(PACKAGE_ROOT, 'dist', 'python', 'pack', 'bin', 'python');

/** Arguments for that Python, before those of `pip install`; what it has itself does not count as installed. */
export const pipInto = (folder: string): string[] => [
  ...['-m', 'pip', 'install', '--prefix', folder],
  ...['--ignore-installed', '--no-warn-script-location'],
];

/**
 * The Python of a virtual environment that has these packages, installed once; or why there is none, such as a machine
 * that is offline.
 */
export function environment(name: string, install: readonly string[]): { python: string } | { skipped: string } {
  const lacking = missing();
  if (lacking !== undefined) return { skipped: lacking };
  if (!existsSync(PACKER)) return { skipped: 'no virtual environment to pack in' };
  const folder = join(PACKAGE_ROOT, 'dist', 'python', name);
  const python = join(folder, 'bin', 'python');
  const marker = join(folder, 'installed');
  const wanted = install.map((each) => (existsSync(each) ? readFileSync(each, 'utf8') : each)).join('\n');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return { python };
  const made = spawnSync('python3', ['-m', 'venv', '--clear', '--without-pip', folder], { encoding: 'utf8' });
  if (made.status !== 0) return { skipped: `no virtual environment: ${lastLine(made.stderr)}` };
  const args = install.flatMap((each) => (existsSync(each) ? ['-r', each] : [each]));
  const options = ['--quiet', '--no-compile', '--disable-pip-version-check', '--retries', '1', '--timeout', '15'];
  const installed = spawnSync(PACKER, [...pipInto(folder), ...options, ...args], { encoding: 'utf8' });
  if (installed.status !== 0) return { skipped: `pip cannot install: ${lastLine(installed.stderr)}` };
  writeFileSync(marker, wanted);
  return { python };
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? '';

/** Runs to its end; the output has both streams in the order in which they were written, roughly. */
export function run(
  python: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<PythonRun> {
  return new Promise((resolve) => {
    const options = {
      cwd: PYTHON_SDK,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env },
      maxBuffer: 64 * 1024 * 1024,
    };
    execFile(python, [...args], options, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ status, output: `${stdout}${stderr}` });
    });
  });
}
