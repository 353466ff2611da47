/** The SDK as it is published: packed, installed in an empty project, and used from there. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import protobuf from 'protobufjs';
import { publint } from 'publint';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { PROTOCOL } from '../../sdk/typescript/src/protocol.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { PACKING_MS, pathsIn, tarballOf, unpack } from '../support/packed.ts';

const SDK = join(PACKAGE_ROOT, 'sdk', 'typescript');

type Manifest = {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
};
const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

/** An empty project that has installed the package, and what npm made of it. */
let project: string;
let tarball: Uint8Array<ArrayBuffer>;
let packed: readonly string[];

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'svc-consumer-'));
  const file = await tarballOf('svc-gateway-sdk');
  packed = pathsIn(file);
  tarball = new Uint8Array(readFileSync(file));
  await unpack('svc-gateway-sdk', join(project, 'node_modules'));
  for (const name of Object.keys(manifestIn(SDK).dependencies ?? {})) {
    mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true });
    symlinkSync(join(PACKAGE_ROOT, 'node_modules', name), join(project, 'node_modules', name));
  }
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
}, PACKING_MS);
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** A file of the project, run by Node.js. */
function run(file: string, source: string) {
  writeFileSync(join(project, file), source);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { cwd: project, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** Compiles files of the project, checking libraries too; returns the compiler's messages. */
function compiled(sources: Readonly<Record<string, string>>, ...options: readonly string[]): string {
  for (const [file, source] of Object.entries(sources)) writeFileSync(join(project, file), source);
  const tsc = join(PACKAGE_ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--types', ''];
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [tsc, ...strict, '--lib', 'es2022,dom', ...options, ...Object.keys(sources)],
    { cwd: project, encoding: 'utf8' },
  );
  return stdout + stderr;
}

describe('the package of the SDK', () => {
  test('holds what was built, its README and its license, and nothing else', () => {
    expect(packed).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'dist/cjs/index.js', 'dist/esm/index.js', 'dist/esm/index.d.ts']),
    );
    expect(packed.filter((path) => !/^(LICENSE|README\.md|package\.json|dist\/(cjs|esm)\/.*)$/.test(path))).toEqual([]);
    expect(readFileSync(join(SDK, 'LICENSE'), 'utf8')).toBe(readFileSync(join(PACKAGE_ROOT, 'LICENSE'), 'utf8'));
  });

  test('has the version of the gateway, and of its two dependencies those of the gateway', () => {
    const gateway = manifestIn(PACKAGE_ROOT);
    const { version, dependencies } = manifestIn(SDK);
    expect(version).toBe(gateway.version);
    expect(dependencies).toEqual({
      // The gateway serves gRPC itself, and has this library for its tests and benchmarks.
      '@grpc/grpc-js': gateway.devDependencies?.['@grpc/grpc-js'],
      protobufjs: gateway.dependencies?.protobufjs,
    });
  });

  test('takes less than 20 MB with all that it brings along', () => {
    const bytesIn = (folder: string): number =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !join(entry.parentPath, '/').includes('/node_modules/', folder.length))
        .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
    const found = new Set<string>();
    const visit = (folder: string): void => {
      if (found.has(folder)) return;
      found.add(folder);
      for (const name of Object.keys(manifestIn(folder).dependencies ?? {})) visit(installedFor(folder, name));
    };
    visit(SDK);
    expect([...found].some((folder) => folder.endsWith('node_modules/@grpc/proto-loader'))).toBe(true);
    const sources = bytesIn(join(SDK, 'src'));
    expect([...found].reduce((sum, folder) => sum + bytesIn(folder), 0) - sources).toBeLessThan(20_000_000);
  });

  /** Finds the package that Node.js would import in this folder. */
  function installedFor(folder: string, name: string): string {
    const there = join(folder, 'node_modules', name);
    if (existsSync(there)) return there;
    if (folder === PACKAGE_ROOT) throw new Error(`${name} is not installed`);
    return installedFor(dirname(folder), name);
  }

  test('passes publint and arethetypeswrong', async () => {
    const { messages } = await publint({ pack: { tarball: tarball.buffer }, strict: true });
    expect(messages).toEqual([]);
    const analysis = await checkPackage(createPackageFromTarballData(tarball));
    if (analysis.types === false) expect.unreachable('it has no types');
    expect(analysis.problems).toEqual([]);
  });

  const NAMES =
    "['ActionDeniedError','ApprovalPendingError','ClientClosedError','GatewayError','OpTerminatedError','UnconfirmedWarning','createAgentClient']";
  const PRINT_NAMES = `console.log(JSON.stringify(Object.keys(sdk).sort()) === JSON.stringify(${NAMES}));`;

  test('is imported as ES module and required as CommonJS, with the same classes', () => {
    expect(run('import.mjs', `import * as sdk from 'svc-gateway-sdk'; ${PRINT_NAMES}`)).toMatchObject({
      stdout: 'true\n',
      stderr: '',
    });
    expect(run('require.cjs', `const sdk = require('svc-gateway-sdk'); ${PRINT_NAMES}`)).toMatchObject({
      stdout: 'true\n',
      stderr: '',
    });
    const both = `import { createRequire } from 'node:module';
      import { GatewayError } from 'svc-gateway-sdk';
      console.log(new (createRequire(import.meta.url)('svc-gateway-sdk').GatewayError)('internal', '') instanceof GatewayError);`;
    expect(run('both.mjs', both)).toMatchObject({ stdout: 'true\n', stderr: '' });
  });

  const AGENT = `import { createAgentClient, type AgentClientOptions, type Op } from 'svc-gateway-sdk';
const agent = { orgId: 'acme', teamId: 'search', agentId: 'a1' };
const options: AgentClientOptions = { address: '127.0.0.1:50051', agent, apiKey: 'key', tls: { ca: new Uint8Array() } };
export const answer: Promise<number> = createAgentClient(options).run({ action: 'tool.call' }, async (op: Op) => {
  await op.checkpoint();
  return op.signal.aborted ? 0 : 1;
});
// @ts-expect-error an action has a name
void createAgentClient(options).check({ resource: 'web_search' });
`;

  /** The example that a document prints, with what it takes for granted. */
  function exampleOf(document: string): string {
    const text = readFileSync(join(PACKAGE_ROOT, document), 'utf8');
    const [, example = ''] = /```js\n([^]*?)```/.exec(text) ?? [];
    expect(example).toContain('createAgentClient');
    return `${example}
declare const process: { env: Record<string, string | undefined> };
declare const queries: string[];
declare const urlOf: (query: string) => string;
`;
  }

  test('compiles in a strict project of ES modules or CommonJS, with printed examples', () => {
    const sources = {
      'agent.mts': AGENT,
      'agent.cts': AGENT,
      'of-the-sdk.mts': exampleOf('sdk/typescript/README.md'),
      'of-the-examples.mts': exampleOf('examples/README.md'),
    };
    expect(compiled(sources, '--module', 'nodenext', '--moduleResolution', 'nodenext')).toBe('');
  });

  test('compiles in a strict project for a bundler', () => {
    expect(compiled({ 'agent.ts': AGENT }, '--module', 'esnext', '--moduleResolution', 'bundler')).toBe('');
  });

  test('works in a bundle, with no file of the package beside it', async () => {
    writeFileSync(
      join(project, 'bundled.mjs'),
      `import { createAgentClient } from 'svc-gateway-sdk';
      const agent = createAgentClient({
        address: '127.0.0.1:1', agent: { orgId: '', teamId: 't', agentId: 'a' }, credentialToken: 'token', deadlines: { outageMs: 0 },
      });
      const { unreachable } = await agent.check({ action: 'tool.call', attributes: { size: 3 } });
      console.log(unreachable);
      await agent.close();`,
    );
    const bundle = await rolldown({
      input: join(project, 'bundled.mjs'),
      cwd: project,
      platform: 'node',
      logLevel: 'silent',
    });
    const elsewhere = mkdtempSync(join(tmpdir(), 'svc-bundle-'));
    onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
    await bundle.write({ dir: elsewhere, format: 'esm', codeSplitting: false, entryFileNames: 'agent.mjs' });
    await bundle.close();
    const { stdout, stderr } = spawnSync(process.execPath, ['agent.mjs'], { cwd: elsewhere, encoding: 'utf8' });
    expect({ stdout, stderr }).toEqual({ stdout: 'true\n', stderr: '' });
  });

  test('knows the messages of the .proto files as they are', () => {
    const root = new protobuf.Root();
    root.resolvePath = (_from, file) => (file.startsWith('google/') ? null : join(PACKAGE_ROOT, 'proto', file));
    root.loadSync(
      ['policy_service', 'agent_service', 'approval_service'].map((file) => `svc/governance/v1/${file}.proto`),
    );
    expect(PROTOCOL, 'run `npm run proto`').toEqual(JSON.parse(JSON.stringify(root.toJSON())));
  });

  test('and so does the generated code of the example in Go', () => {
    const check = spawnSync(process.execPath, [join(PACKAGE_ROOT, 'scripts', 'client-code.mjs'), '--check']);
    expect(check.stderr.toString()).toBe('');
    expect(check.status).toBe(0);
  });
});
