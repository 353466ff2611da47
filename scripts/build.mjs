// Compiles to a clean dist/, so that a renamed file cannot live on there, and marks the command as executable.
import { spawnSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const tsc = compiler();
rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
chmodSync('dist/src/cli/main.js', 0o755);

function compiler() {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  } catch {
    console.error(
      'The compiler is not installed: --omit=dev and NODE_ENV=production leave it out. Build after npm ci --include=dev; npm prune --omit=dev drops the compiler again.',
    );
    process.exit(1);
  }
}
