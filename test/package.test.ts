import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/app/package-files.ts';

type Packed = readonly [{ readonly files: readonly { readonly path: string }[] }];
type SourceMap = { readonly sourcesContent?: readonly unknown[] };

describe("the gateway's package", () => {
  test('holds the gateway and its command, and neither SDK, benchmarks nor tests', () => {
    const [{ files }] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'], {
        cwd: PACKAGE_ROOT,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as Packed;
    const paths = files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'CHANGELOG.md',
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
    expect(ranges.filter((range) => !/^(?:npm:@?[^@]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range))).toEqual([]);
  });
});
