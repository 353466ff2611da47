import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

const NO_COMPILER =
  'The compiler is not installed: --omit=dev and NODE_ENV=production leave it out. Build after npm ci --include=dev; npm prune --omit=dev drops the compiler again.\n';

/** A checkout without packages, and so without a compiler. */
function bareCheckout(): string {
  const checkout = mkdtempSync(join(tmpdir(), 'svc-build-'));
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }));
  cpSync(join(PACKAGE_ROOT, 'scripts'), join(checkout, 'scripts'), { recursive: true });
  for (const folder of ['src', 'dist/web']) mkdirSync(join(checkout, folder), { recursive: true });
  writeFileSync(join(checkout, 'src', 'a.ts'), 'export const a = 1;');
  writeFileSync(join(checkout, 'dist', 'web', 'built'), 'before');
  return checkout;
}

describe('build', () => {
  test('without the compiler the build says how to get it and keeps the last build', () => {
    const checkout = bareCheckout();
    const build = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: checkout, encoding: 'utf8' });
    expect({ status: build.status, stderr: build.stderr }).toEqual({
      status: 1,
      stderr: NO_COMPILER,
    });
    expect(readFileSync(join(checkout, 'dist', 'web', 'built'), 'utf8')).toBe('before');
  });

  test('with --if-changed it builds only if a source or a result is another', () => {
    const checkout = bareCheckout();
    const note = `import('./scripts/built.mjs').then(({ noteBuilt }) => noteBuilt(process.cwd()))`;
    /** A build that has begun stops at the missing compiler. */
    const outcome = (): string => {
      const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-changed'], {
        cwd: checkout,
        encoding: 'utf8',
      });
      return build.stdout + build.stderr;
    };
    expect(outcome()).toBe(NO_COMPILER); // it was never built
    expect(spawnSync(process.execPath, ['-e', note], { cwd: checkout }).status).toBe(0);
    expect(outcome()).toBe('dist/ is up to date\n');
    const [source, result] = [join(checkout, 'src', 'a.ts'), join(checkout, 'dist', 'web', 'built')];
    writeFileSync(source, 'export const a = 2;');
    expect(outcome()).toBe(NO_COMPILER);
    writeFileSync(source, 'export const a = 1;');
    expect(outcome()).toBe('dist/ is up to date\n');
    writeFileSync(join(checkout, 'src', 'b.ts'), '');
    expect(outcome()).toBe(NO_COMPILER);
    rmSync(join(checkout, 'src', 'b.ts'));
    writeFileSync(result, 'after');
    expect(outcome()).toBe(NO_COMPILER);
  });
});
