/** The packages of the gateway and its SDKs as `npm run pack` makes them, made once for all files of a run. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from './eventually.ts';

/** A deadline for whoever waits for it: its tools for Python are fetched first. */
export const PACKING_MS = 300_000;

/** Resolves with the folder, in which nobody writes. Rejects for all where packing fails. */
export async function packedFolder(): Promise<string> {
  const folder = join(inject('scratch'), 'packed');
  const outcome = `${folder}.outcome`;
  if (isMade(folder)) {
    const packing = promisify(execFile)(process.execPath, [join(PACKAGE_ROOT, 'scripts', 'pack.mjs'), folder]);
    writeFileSync(`${outcome}.partial`, await packing.then(() => 'packed', String));
    renameSync(`${outcome}.partial`, outcome);
  }
  const said = await eventually(() => readFileSync(outcome, 'utf8'), PACKING_MS);
  if (said !== 'packed') throw new Error(said);
  return folder;
}

/** False where another test file was first. */
function isMade(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (existsSync(folder)) return false;
    throw error;
  }
}

/** The tarball of `svc-gateway` or `svc-gateway-sdk`. */
export async function tarballOf(name: string): Promise<string> {
  const folder = await packedFolder();
  const [file] = readdirSync(folder).filter((each) => new RegExp(`^${name}-\\d.*\\.tgz$`).test(each));
  if (file === undefined) throw new Error(`${folder} has no tarball of ${name}`);
  return join(folder, file);
}

/** Unpacks one of them into a folder of node_modules, where npm would install it. */
export async function unpack(name: string, modules: string): Promise<void> {
  const installed = join(modules, name);
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', await tarballOf(name), '--strip-components', '1', '-C', installed]);
}

/** The paths in a tarball. */
export const pathsIn = (tarball: string): string[] =>
  execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''));
