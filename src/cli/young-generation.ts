/**
 * Operations outlive many checks, so the collector of young objects copies them, twice each, while checks wait. With
 * room for more checks between two collections it runs less often, and most of what it meets is gone already: at 5,000
 * new operations a second the slowest percent of checks waits half as long.
 */

/** In MiB for each half-space of a thread; the default is 16. An idle gateway takes none of it. */
export const YOUNG_GENERATION_FLAG = '--max-semi-space-size=64';

/**
 * The size is fixed when a process starts: `npm start` and the image give the flag, and where Node.js can (22.15 and
 * later), `svc serve` starts the process over, under the same id. A size that an operator has given stays.
 */
export function ensureYoungGeneration(): void {
  const { execve } = process as { execve?: (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never };
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  // A parent's channel would not survive.
  if (execve === undefined || given.includes('semi-space-size') || process.channel !== undefined) return;
  execve(
    process.execPath,
    [process.execPath, YOUNG_GENERATION_FLAG, ...process.execArgv, ...process.argv.slice(1)],
    process.env,
  );
}
