import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { PACKING_MS, packedFolder, pathsIn, tarballOf, unpack } from './support/packed.ts';

type Component = { readonly name: string; readonly version: string; readonly licenses: readonly unknown[] };
type Bill = {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
};
type SourceMap = { readonly sourcesContent?: readonly unknown[] };

const folder = mkdtempSync(join(tmpdir(), 'svc-package-'));
const billOf = (): Bill => JSON.parse(readFileSync(join(PACKAGE_ROOT, 'dist', 'sbom.cdx.json'), 'utf8')) as Bill;
beforeAll(packedFolder, PACKING_MS); // and with it, its bill
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Puts beside them what their bill names, and nothing else of the checkout. */
function linkComponents(): void {
  for (const { name } of billOf().components) {
    const [from, to] = [join(PACKAGE_ROOT, 'node_modules', name), join(folder, 'node_modules', name)];
    if (!existsSync(from) || existsSync(to)) continue;
    mkdirSync(dirname(to), { recursive: true });
    symlinkSync(from, to);
  }
  mkdirSync(join(folder, 'node_modules', '.bin'));
  symlinkSync('../svc-gateway/dist/src/cli/main.js', join(folder, 'node_modules', '.bin', 'svc'));
}

describe("the gateway's package", () => {
  test('holds the gateway and its command, and neither SDK, benchmarks nor tests', async () => {
    const paths = pathsIn(await tarballOf('svc-gateway'));
    expect(paths).toEqual(
      expect.arrayContaining([
        'CHANGELOG.md',
        'dist/NOTICES.txt',
        'dist/sbom.cdx.json',
        'dist/src/chunks/licenses/zod',
        'dist/src/cli/main.js',
        'dist/workers/io.js',
        'docs/operations.md',
        'examples/README.md',
        'examples/agent.mjs',
        'examples/policies/starter.yaml',
        'schemas/policy.schema.json',
        'dist/web/index.html',
        'dist/web/licenses/uplot',
      ]),
    );
    expect(
      paths.filter((path) =>
        /^(dist\/(bench|test|src\/(?!chunks\/|cli\/main\.js))|bench|test|src|sdk|web)\/|tsconfig|\.d\.ts$/.test(path),
      ),
    ).toEqual([]);
    const maps = paths.filter((path) => path.endsWith('.map'));
    expect(maps).toContain('dist/src/chunks/serve.js.map');
    const sourceIn = (path: string) =>
      (JSON.parse(readFileSync(join(PACKAGE_ROOT, path), 'utf8')) as SourceMap).sourcesContent?.[0];
    expect(maps.filter((path) => typeof sourceIn(path) !== 'string')).toEqual([]); // a debugger finds no src/ beside it
  });

  // npm reads overrides of the project it installs into alone. A shrinkwrap would have it install the binaries for all
  // platforms, 700 MB of PostgreSQL, since it looks at `os` and `cpu` only of what it resolves itself.
  test('pins each dependency itself, because overrides do not reach those who install it', () => {
    const { dependencies, optionalDependencies, overrides } = JSON.parse(
      readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>;
    expect(overrides).toBeUndefined();
    const ranges = Object.values({ ...dependencies, ...optionalDependencies });
    expect(ranges.filter((range) => !/^(?:npm:@?[^@]+@)?\d+\.\d+\.\d+(?:-[\w.-]+)?$/.test(range))).toEqual([]);
  });

  test('names all that it installs or contains, with licences', () => {
    const { bomFormat, metadata, components } = billOf();
    expect({ bomFormat, name: metadata.component.name }).toEqual({ bomFormat: 'CycloneDX', name: 'svc-gateway' });
    const names = components.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['argon2', 'pg', 'uplot', 'preact', 'zod', '@grpc/grpc-js', 'svc-gateway-sdk']),
    );
    expect(names.filter((name) => ['vitest', 'typescript', 'playwright-core'].includes(name))).toEqual([]);
    expect(components.filter(({ licenses }) => licenses.length === 0)).toEqual([]);
    const { dependencies } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    expect(Object.keys(dependencies).filter((name) => !names.includes(name))).toEqual([]);
    const notices = readFileSync(join(PACKAGE_ROOT, 'dist', 'NOTICES.txt'), 'utf8');
    for (const { name, version } of components)
      if (name !== 'svc-gateway-sdk') expect(notices).toContain(`\n${name} ${version}\nLicence: `);
    expect(notices).toContain('Copyright (c) 2022 Leon Sorokin'); // of uPlot, which is within the dashboard
  });

  test('in an empty folder, with what its bill names, svc runs and a gateway serves', async () => {
    for (const name of ['svc-gateway', 'svc-gateway-sdk']) await unpack(name, join(folder, 'node_modules'));
    linkComponents();
    const ran = execFileSync('npx', ['--offline', 'svc', '--version'], { cwd: folder, encoding: 'utf8' });
    expect(ran).toBe('0.2.0\n');
    const gateway = spawn('node_modules/.bin/svc', ['serve'], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', SVC_HTTP_ADDR: '127.0.0.1:0', SVC_GRPC_ADDR: '127.0.0.1:0' },
    });
    const ended = new Promise((resolve) => gateway.once('exit', resolve));
    const url = await new Promise<string>((resolve, reject) => {
      let said = '';
      gateway.stderr.on('data', (text) => {
        said += text;
      });
      gateway.stdout.on('data', (text) => {
        said += text;
        const found = /HTTP\s+(http:\S+)/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      gateway.once('exit', () => reject(new Error(said)));
    });
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(await (await fetch(url)).text()).toContain('<!doctype html>');
    gateway.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(readdirSync(folder)).toContain('data');
  });
});
