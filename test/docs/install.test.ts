/**
 * Commands that the documents tell a newcomer to type: from the packages as `npm run pack` makes them, against a
 * gateway.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { PACKING_MS, packedFolder, unpack } from '../support/packed.ts';

const SCRIPTED = join(PACKAGE_ROOT, 'test', 'mcp', 'scripted-server.mjs');

/** The first block of that language after the heading. */
function blockOf(file: string, heading: string, language: string): string {
  const section = readFileSync(join(PACKAGE_ROOT, file), 'utf8').split(`${heading}\n`)[1] ?? '';
  const block = new RegExp(`\`\`\`${language}\n(.*?)\n\`\`\``, 's').exec(section)?.[1];
  if (block === undefined) throw new Error(`${file} has no block of ${language} after ${heading}`);
  return block;
}

describe('a newcomer who types what the documents say', () => {
  let gateway: TestGateway;
  /** With `artifacts`, and `lib` in which the packages are installed. */
  let folder: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    folder = mkdtempSync(join(tmpdir(), 'svc-install-'));
    symlinkSync(await packedFolder(), join(folder, 'artifacts'));
    const modules = join(folder, 'lib', 'node_modules');
    for (const name of ['svc-gateway', 'svc-gateway-sdk']) await unpack(name, modules);
    // Packages that npm would fetch.
    for (const name of readdirSync(join(PACKAGE_ROOT, 'node_modules')))
      if (!name.startsWith('.') && name !== 'svc-gateway-sdk')
        symlinkSync(join(PACKAGE_ROOT, 'node_modules', name), join(modules, name));
    mkdirSync(join(folder, 'bin'));
    symlinkSync(join(modules, 'svc-gateway', 'dist', 'src', 'cli', 'main.js'), join(folder, 'bin', 'svc'));
    // npm itself would need the network; what it is asked for is looked at.
    writeFileSync(join(folder, 'bin', 'npm'), '#!/bin/sh\necho "npm $*" >> "$HOME/npm.log"\n', { mode: 0o755 });
  }, PACKING_MS);
  afterAll(async () => {
    await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs lines as a shell that stops at the first that fails; with what npm was asked for. */
  function typed(lines: string, cwd = folder): { status: number | null; output: string; npm: readonly string[] } {
    const home = mkdtempSync(join(folder, 'home-'));
    const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-eo', 'pipefail', '-c', lines], {
      cwd,
      encoding: 'utf8',
      input: '',
      env: {
        HOME: home,
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        SVC_CLI_API_URL: gateway.url,
        SVC_CLI_API_KEY: ADMIN_KEY,
      },
    });
    const log = spawnSync('cat', [join(home, 'npm.log')], { encoding: 'utf8' }).stdout.trimEnd();
    return { status, output: stdout + stderr, npm: log.split('\n') };
  }
  const INSTALLED = [
    'npm ci',
    'npm run pack',
    expect.stringMatching(/^npm install -g( \.\/artifacts\/svc-gateway\S*\.tgz){2}$/),
  ];
  /** In place of the dots, the token that the line before has shown. */
  const withToken = (lines: string, agent: string): string =>
    lines
      .replace(
        new RegExp(`^svc agents register ${agent}.*$`, 'm'),
        (line) => `TOKEN=$(${line.split('#')[0]} -o json | grep -oP '"credential_token": *"\\K[^"]+')`,
      )
      .replace('SVC_AGENT_TOKEN=…', 'SVC_AGENT_TOKEN=$TOKEN')
      .replace(/https?:\/\/(svc\.example\.com|127\.0\.0\.1:8080)/, gateway.url);

  test('installs svc, logs in and puts the hooks of an agent in place', () => {
    const [lines] = withToken(blockOf('docs/hooks.md', '## Install', 'sh'), 'acme/dev/coder').split(
      '\nsvc hooks doctor',
    );
    const { status, output, npm } = typed(lines!);
    expect({ status, output }).toMatchObject({ status: 0, output: expect.stringContaining('claude') });
    expect(npm).toEqual(INSTALLED);
  });

  test('puts a guard in front of an MCP server', () => {
    const lines = withToken(blockOf('docs/mcp.md', '## Around one server', 'sh'), 'acme/dev/claude').replace(
      /-- npx .*$/,
      `-- "${process.execPath}" "${SCRIPTED}"`,
    );
    const { status, output, npm } = typed(lines);
    expect({ status, output }).toMatchObject({ status: 0 });
    expect(npm).toEqual(INSTALLED);
  });

  test('finds svc by the README and the page of the command line', () => {
    const [line = ''] = blockOf('README.md', '## The command line', 'sh').split('\n');
    expect(typed(`${line}\nsvc version`)).toMatchObject({ status: 0, npm: INSTALLED });
    expect(typed(blockOf('docs/cli.md', '# The command line', 'sh'))).toMatchObject({ status: 0, npm: INSTALLED });
  });

  test.each([
    ['sdk/typescript/README.md', '# svc-gateway-sdk'],
    ['examples/README.md', '## Your own agent'],
  ])('runs the sample of %s', (file, heading) => {
    const project = mkdtempSync(join(folder, 'project-'));
    symlinkSync(join(folder, 'lib', 'node_modules'), join(project, 'node_modules'));
    const install = blockOf(file, heading, 'sh').replaceAll('../svc-gateway/', '../');
    expect(typed(install, project).npm).toEqual([
      'npm ci',
      'npm run pack',
      expect.stringMatching(/^npm install \.\.\/artifacts\/svc-gateway-sdk-\d\S*\.tgz$/),
    ]);
    const sample = blockOf(file, heading, 'js')
      .replaceAll('http://127.0.0.1:8080', gateway.url)
      .replace('127.0.0.1:50051', gateway.grpc);
    writeFileSync(join(project, 'agent.mjs'), sample);
    const { status, output } = typed(`AGENT_API_KEY=${ADMIN_KEY} "${process.execPath}" agent.mjs`, project);
    expect({ status, output }).toEqual({ status: 0, output: `${gateway.url}/healthz 200\n` });
  });
});
