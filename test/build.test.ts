import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

describe('build', () => {
  test('without the compiler the build says how to get it and keeps the last build', () => {
    const checkout = mkdtempSync(join(tmpdir(), 'svc-build-'));
    onTestFinished(() => rmSync(checkout, { recursive: true, force: true }));
    cpSync(join(PACKAGE_ROOT, 'scripts'), join(checkout, 'scripts'), { recursive: true });
    mkdirSync(join(checkout, 'dist'));
    writeFileSync(join(checkout, 'dist', 'built'), 'before');

    const build = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: checkout, encoding: 'utf8' });
    expect({ status: build.status, stderr: build.stderr }).toEqual({
      status: 1,
      stderr:
        'The compiler is not installed: --omit=dev and NODE_ENV=production leave it out. Build after npm ci --include=dev; npm prune --omit=dev drops the compiler again.\n',
    });
    expect(readFileSync(join(checkout, 'dist', 'built'), 'utf8')).toBe('before');
  });
});
