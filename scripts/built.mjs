// Whether dist/ is what a build would make of the sources as they are: `npm ci` builds, and `npm test` after it need not.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** All that a build reads; the lock file stands for the packages. */
const SOURCES = ['src', 'workers', 'bench', 'test/support', 'sdk/typescript', 'web', 'scripts'];
const SINGLE_SOURCES = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
const RESULTS = ['dist/src', 'dist/workers', 'dist/bench', 'dist/test', 'dist/web', 'sdk/typescript/dist'];
const RECORD = join('dist', 'built.json');

const filesIn = (root, folder) =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .sort()
    : [];

function stateOf(root) {
  const [sources, results] = [createHash('sha256'), createHash('sha256')];
  const isSource = (path) => !/\/(?:node_modules|dist)\//.test(relative(root, path));
  const read = [
    ...SOURCES.flatMap((folder) => filesIn(root, folder)).filter(isSource),
    ...SINGLE_SOURCES.map((name) => join(root, name)).filter((path) => existsSync(path)),
  ];
  sources.update(process.version);
  for (const path of read) {
    const content = readFileSync(path);
    sources.update(`\n${relative(root, path)} ${content.length}\n`).update(content);
  }
  for (const path of RESULTS.flatMap((folder) => filesIn(root, folder))) {
    const { size, mtimeMs } = statSync(path);
    results.update(`${relative(root, path)} ${size} ${mtimeMs}\n`);
  }
  return { sources: sources.digest('hex'), results: results.digest('hex') };
}

/** To be called when a build has ended well. */
export const noteBuilt = (root) => writeFileSync(join(root, RECORD), JSON.stringify(stateOf(root)));

export const isBuilt = (root) =>
  existsSync(join(root, RECORD)) && readFileSync(join(root, RECORD), 'utf8') === JSON.stringify(stateOf(root));
