import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/package-files.ts';

type Packed = readonly [{ readonly files: readonly { readonly path: string }[] }];

describe('package', () => {
  test('the package holds the gateway, its command and the SDK with types, no extras', () => {
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
        'dist/src/cli/main.js',
        'dist/src/sdk/index.d.ts',
        'dist/src/sdk/index.js',
        'dist/workers/io.js',
        'docs/operations.md',
        'examples/README.md',
        'examples/agent.mjs',
        'examples/policies/starter.yaml',
        'web/index.html',
      ]),
    );
    expect(paths.filter((path) => /^(dist\/(bench|test)|bench|test|src)\/|tsconfig/.test(path))).toEqual([]);
    expect(paths.filter((path) => path.endsWith('.d.ts') && !path.startsWith('dist/src/sdk/'))).toEqual([]); // nothing else can be imported
    const maps = paths.filter((path) => path.endsWith('.map'));
    expect(maps).toContain('dist/src/main.js.map');
    const sourceIn = (path: string) =>
      (JSON.parse(readFileSync(join(PACKAGE_ROOT, path), 'utf8')) as { sourcesContent?: readonly unknown[] })
        .sourcesContent?.[0];
    expect(maps.filter((path) => typeof sourceIn(path) !== 'string')).toEqual([]); // a debugger finds no src/ beside it
  });

  const ONE_LINER = `import { createAgentClient, type AgentClientOptions, type Op } from 'svc-gateway/sdk';
const options: AgentClientOptions = { address: '127.0.0.1:50051', agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' }, apiKey: 'key', tls: { ca: new Uint8Array() } };
export const answer: Promise<number> = createAgentClient(options).run({ action: 'tool.call' }, async (op: Op) => { await op.checkpoint(); return op.signal.aborted ? 0 : 1; });
`;

  test.each([
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ])('a strict project finds the SDK types with module %s and resolution %s', (module, resolution) => {
    expect(compiled(ONE_LINER, ['--module', module, '--moduleResolution', resolution, '--types', ''])).toBe('');
  });

  test('the documented example agent compiles in a strict project', () => {
    const printed =
      /```js\n([^]*?)```/.exec(readFileSync(join(PACKAGE_ROOT, 'examples', 'README.md'), 'utf8'))?.[1] ?? '';
    expect(printed).toContain('createAgentClient');
    const around =
      'declare const process: { env: Record<string, string | undefined> };\ndeclare const queries: string[];\ndeclare const urlOf: (query: string) => string;\n';
    expect(
      compiled(printed + around, [
        '--module',
        'node16',
        '--moduleResolution',
        'node16',
        '--types',
        '',
        '--lib',
        'es2022,dom',
      ]),
    ).toBe('');
  });

  /** What the compiler says of this file in a strict project that has nothing but the package. */
  function compiled(source: string, options: readonly string[]): string {
    const folder = mkdtempSync(join(tmpdir(), 'svc-consumer-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(PACKAGE_ROOT, join(folder, 'node_modules', 'svc-gateway'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, 'agent.ts'), source);
    const { stdout } = spawnSync(
      process.execPath,
      [
        join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc'),
        '--noEmit',
        '--strict',
        '--target',
        'es2022',
        ...options,
        'agent.ts',
      ],
      { cwd: folder, encoding: 'utf8' },
    );
    return stdout;
  }

  test('an SDK without the rest of its package, as in a bundle, says what to do', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-bundle-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    cpSync(join(PACKAGE_ROOT, 'dist', 'src', 'sdk'), join(folder, 'sdk'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'sdk', 'index.js')], { encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stderr).toContain('keep the package out of the bundle, in esbuild with --external:svc-gateway\n');
  });
});
