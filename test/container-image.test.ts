/** Checks of the container image without building it: its build gets all it needs, and finds what it ships. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

const linesOf = (path: string): string[] =>
  readFileSync(join(PACKAGE_ROOT, path), 'utf8')
    .split('\n')
    .filter((line) => line !== '');

/**
 * A clean checkout without what .dockerignore keeps out, and with the libraries, as when `npm run build` runs in the
 * image.
 */
function buildContext(): string {
  const context = mkdtempSync(join(tmpdir(), 'svc-image-'));
  onTestFinished(() => rmSync(context, { recursive: true, force: true }));
  const ignored = new Set(linesOf('.dockerignore'));
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
  for (const path of files.filter(
    (file) => !ignored.has(file.split('/', 1)[0] ?? '') && existsSync(join(PACKAGE_ROOT, file)),
  ))
    cpSync(join(PACKAGE_ROOT, path), join(context, path));
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(context, 'node_modules'));
  return context;
}

describe('container image', () => {
  test('the image builds from what .dockerignore admits, with all that it ships', () => {
    const context = buildContext();
    const { status, stdout } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: context, encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });

    const shipped = linesOf('Dockerfile')
      .filter((line) => line.startsWith('COPY --from=build'))
      .flatMap((line) => line.match(/\/app\/\S+/g) ?? []);
    expect(shipped).toContain('/app/dist');
    expect(shipped.filter((path) => !existsSync(join(context, path.slice('/app/'.length))))).toEqual([]);

    const version = spawnSync(process.execPath, ['dist/src/cli/main.js', '--version'], {
      cwd: context,
      encoding: 'utf8',
    });
    expect(version).toMatchObject({ status: 0, stderr: '' });
  });

  test('the shipped native HTTP library is built for the Node.js of the image', () => {
    const dockerfile = linesOf('Dockerfile');
    const bases = dockerfile.filter((line) => line.startsWith('FROM '));
    expect(bases).toEqual(['FROM node:24-trixie-slim AS build', 'FROM node:24-trixie-slim']);
    // 137: the interface of Node.js 24 for native modules. Debian 13 has glibc 2.41, and the library needs 2.38.
    for (const arch of ['x64', 'arm64'])
      expect(existsSync(join(PACKAGE_ROOT, `node_modules/uWebSockets.js/uws_linux_${arch}_137.node`))).toBe(true);
    expect(dockerfile).toContain('ARG UWS=');
  });
});
