/**
 * Another commit of the project, built aside, to be measured in turn with this one. Its own benchmarks are not run:
 * they may have asked something else.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

/** The compiler writes ES modules of the SDK for a path with `node_modules` in it, whatever it is told. */
const CACHE = join(PACKAGE_ROOT, 'artifacts', 'bench');
/** Stays this commit's: it knows where the benchmarks are. */
const OWN = join('system', 'package-files.ts');

/** The folder of a commit's build; made once, and kept for the next time. */
export function buildAside(name: string): string {
  const commit = output('git', ['rev-parse', '--verify', '--quiet', `${name}^{commit}`], PACKAGE_ROOT);
  if (commit === undefined) throw new Error(`git knows no commit ${JSON.stringify(name)}`);
  const folder = join(CACHE, commit.slice(0, 12));
  const isDone = join(folder, '.built');
  if (existsSync(isDone)) return folder;
  console.log(`building ${name} aside, which takes a minute`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run('sh', ['-c', `git archive ${commit} | tar -x -C "$0"`, folder], PACKAGE_ROOT);
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder);
  writeFileSync(isDone, `${commit}\n`);
  return folder;
}

/**
 * This benchmark, linked with the sources of the other commit: `../src/core/audit/audit-line.ts` is the file of that
 * name there, wherever it lies. A helper that the other commit lacks is taken from here.
 */
export async function linkWith(folder: string, bench: string): Promise<string> {
  const { rolldown } = await import('rolldown');
  const files = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' });
  const src = join(PACKAGE_ROOT, 'src');
  const bundle = await rolldown({
    cwd: folder,
    platform: 'node',
    input: join(PACKAGE_ROOT, 'bench', `${bench}.ts`),
    external: (id) => !/^[./]/.test(id),
    logLevel: 'warn',
    plugins: [
      {
        name: 'other-commit',
        resolveId(id, importer) {
          if (importer === undefined || !id.startsWith('.')) return null;
          const wanted = relative(src, resolve(dirname(importer), id));
          if (wanted.startsWith('..') || wanted === OWN) return null;
          const found = sameFile(files, wanted);
          return found === undefined ? null : join(folder, 'src', found);
        },
      },
    ],
  });
  const file = join(folder, 'dist', 'against', `${bench}.js`);
  await bundle.write({ file, format: 'es', codeSplitting: false });
  await bundle.close();
  return file;
}

/** `policy/document.ts` was `policy-document.ts` before folders stood for concepts. */
export function sameFile(files: readonly string[], wanted: string): string | undefined {
  const names = [basename(wanted), wanted.split(sep).slice(-2).join('-')];
  return files.find((file) => file === wanted) ?? files.find((file) => names.includes(basename(file)));
}

const output = (command: string, words: readonly string[], cwd: string): string | undefined => {
  const { status, stdout } = spawnSync(command, words, { cwd, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
};

function run(command: string, words: readonly string[], cwd: string): void {
  const { status } = spawnSync(command, words, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${words[0]} failed in ${cwd}`);
}
