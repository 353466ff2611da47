/** Tests that start the command, the SDK's package or a thread run what was built, and vitest builds nothing. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const BUILT = 'dist/src/cli/main.js';

/** The newest of the sources that is newer than what was built; undefined where none is. */
function changedSinceBuild(): string | undefined {
  const changedMs = (path: string): number =>
    statSync(join(PACKAGE_ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = ['src', 'workers', 'sdk/typescript/src']
    .flatMap((folder) =>
      readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
    )
    .filter((path) => path.endsWith('.ts'));
  const newest = sources.reduce((latest, path) => (changedMs(path) > changedMs(latest) ? path : latest));
  return changedMs(newest) > changedMs(BUILT) ? newest : undefined;
}

/** Only says so: most tests read the sources themselves. */
export function setup(): void {
  const changed = changedSinceBuild();
  if (changed !== undefined)
    console.warn(
      `\n${changed} is newer than ${BUILT}: tests that start the gateway run what was built before. \`npm run build\` builds it anew.`,
    );
}
