// The wheel and the sdist of the Python package, made by its standard tools in a virtual environment under dist/python.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TOOLS = ['build==1.6.1', 'hatchling==1.33.0'];

/** Puts both into the folder, in place of older ones. Returns why there are none, if there cannot be any. */
export function packPython(folder) {
  for (const name of readdirSync(folder))
    if (/^svc_gateway-.*(\.whl|\.tar\.gz)$/.test(name)) rmSync(join(folder, name));
  const environment = join(ROOT, 'dist', 'python', 'pack');
  const python = join(environment, 'bin', 'python');
  if (!existsSync(join(environment, 'installed'))) {
    if (run('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']) !== undefined)
      return 'python3, 3.10 or later, is not installed';
    const made = run('python3', ['-m', 'venv', '--clear', environment]);
    if (made !== undefined) return `no virtual environment: ${made}`;
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '15'];
    const installed = run(python, [...pip, ...TOOLS]) ?? run(python, ['-c', marking(environment)]);
    if (installed !== undefined) return `pip cannot install ${TOOLS.join(' and ')}: ${installed}`;
  }
  // Beside the folder, so that what is half made is not taken for a package.
  const made = mkdtempSync(join(folder, '.python-'));
  const args = ['-m', 'build', '--no-isolation', '--outdir', made, join(ROOT, 'sdk', 'python')];
  const failed = run(python, args);
  if (failed === undefined) for (const name of readdirSync(made)) renameSync(join(made, name), join(folder, name));
  rmSync(made, { recursive: true });
  if (failed !== undefined) throw new Error(`the Python package cannot be built: ${failed}`);
  return undefined;
}

const marking = (environment) => `open(${JSON.stringify(join(environment, 'installed'))}, 'w').close()`;

/** Runs a command; returns the error if it fails. */
function run(command, args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return undefined;
  return error?.message ?? `${stdout}${stderr}`.trim().split('\n').slice(-5).join('\n');
}
