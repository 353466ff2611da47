import { fileURLToPath } from 'node:url';

/**
 * The compiled entry file of a worker thread, `workers/<name>.js`. Threads always run compiled code: from the sources
 * (tests) it is the one in `dist/`, so run the build after a change to anything that a worker runs.
 */
export function workerFile(name: string): string {
  const root = import.meta.url.endsWith('.ts') ? '../../dist/' : '../../';
  return fileURLToPath(new URL(`${root}workers/${name}.js`, import.meta.url));
}
