/**
 * The commands of docs/deploy.md, typed in a shell: those of `svc` at a gateway. A program that would change the machine
 * or needs a cluster only notes what it is told, which is then held against the files and values that there are.
 */
import { spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { COMMANDS, GROUPS } from '../../src/cli/commands.ts';
import { parseCommandLine } from '../../src/cli/program.ts';
import { readConfig } from '../../src/config/read.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { SVC } from '../support/cli.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { conforms } from '../support/json-schema.ts';

const read = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const PAGE = read('docs/deploy.md');
const BLOCKS = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
const NOTED = ['docker', 'helm', 'install', 'journalctl', 'kubectl', 'npm', 'systemctl'];

type Values = { [key: string]: unknown };

type Typed = {
  readonly output: string;
  /** The words of each command that was only noted. */
  readonly noted: readonly (readonly string[])[];
};

describe('docs/deploy.md', () => {
  let gateway: TestGateway;
  let folder: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    folder = mkdtempSync(join(tmpdir(), 'svc-deploy-'));
    for (const name of ['deploy', 'examples']) symlinkSync(join(PACKAGE_ROOT, name), join(folder, name));
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const script = (name: string, line: string): void =>
      writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
    const note = `printf '%s\\037' "\${0##*/}" "$@" >> "$NOTED"; echo >> "$NOTED"`;
    for (const name of NOTED) script(name, note);
    script('sudo', 'exec "$@"');
    if (spawnSync('promtool', ['--version']).error !== undefined) script('promtool', note);
    symlinkSync(SVC, join(bin, 'svc'));
  });
  afterAll(async () => {
    await gateway?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** In a shell that stops at the first command that fails. */
  function typed(lines: string): Typed {
    const home = mkdtempSync(join(folder, 'home-'));
    const notes = join(home, 'noted');
    writeFileSync(notes, '');
    const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-eo', 'pipefail', '-c', lines], {
      cwd: folder,
      encoding: 'utf8',
      input: '',
      env: {
        HOME: home,
        NOTED: notes,
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        POSTGRES_PASSWORD: 'a-password',
        SVC_CLI_API_URL: gateway.url,
        SVC_CLI_API_KEY: ADMIN_KEY,
      },
    });
    const noted = readFileSync(notes, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('\u001f').slice(0, -1));
    expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
    return { output: stdout, noted };
  }

  test('has the blocks that are typed here', () => {
    expect(BLOCKS).toHaveLength(5);
  });

  test('starts containers with secrets that the gateway takes', () => {
    const { output, noted } = typed(`${BLOCKS[0]}\necho "$POSTGRES_PASSWORD $SVC_BOOTSTRAP_API_KEY"`);
    expect(noted).toEqual([['docker', 'compose', '-f', 'deploy/compose.yaml', 'up', '--build']]);
    const [, password = '', key = ''] = /^(\S+) (\S+)\n$/.exec(output) ?? [];
    expect(password).toMatch(/^[0-9a-f]{32}$/);
    const config = readConfig({
      SVC_DATABASE_URL: `postgres://svc:${password}@postgres/svc`,
      SVC_BOOTSTRAP_API_KEY: key,
    });
    expect(config.ok).toBe(true);
  });

  test('gives the chart values that it has, and secrets that were made', () => {
    const values = parse(read('deploy/helm/svc-gateway/values.yaml')) as Values;
    const schema = JSON.parse(read('deploy/helm/svc-gateway/values.schema.json')) as object;
    const secrets = new Map<string, readonly string[]>();
    for (const [block, replicas] of [
      [BLOCKS[1], 1],
      [BLOCKS[2], 3],
    ] as const) {
      for (const words of typed(block!).noted) {
        if (words[0] === 'kubectl') {
          expect(words.slice(1, 4)).toEqual(['create', 'secret', 'generic']);
          secrets.set(words[4]!, words.slice(5).map(keyOfSecret));
        } else {
          expect(['install', 'upgrade']).toContain(words[1]);
          expect(words.slice(0, 4)).toEqual(['helm', words[1], 'svc-gateway', 'deploy/helm/svc-gateway']);
          put(
            values,
            words.slice(4).filter((word) => word !== '--reuse-values'),
          );
        }
      }
      expect({ replicas: values.replicas, conforms: conforms(values, schema) }).toEqual({ replicas, conforms: true });
    }
    expect(Object.fromEntries(secrets)).toEqual({
      'svc-bootstrap': ['bootstrap-api-key'],
      'svc-database': ['url'],
      'svc-signing': ['signing.pem'],
    });
    const used = Object.values(values.secrets as Record<string, { name: string; key: string }>);
    for (const { name, key } of used.filter((each) => each.name !== '')) expect(secrets.get(name)).toContain(key);
    expect(createPrivateKey(readFileSync(join(folder, 'signing.pem'))).asymmetricKeyType).toBe('ed25519');
  });

  test('installs the service of systemd, which reads the settings where they are put', () => {
    expect(typed(BLOCKS[3]!).noted).toEqual([
      ['npm', 'run', 'pack'],
      ['npm', 'install', '-g', './artifacts/*.tgz'],
      [
        ...['install', '-D', '-m', '0644', 'deploy/systemd/svc-gateway.service'],
        '/etc/systemd/system/svc-gateway.service',
      ],
      ['install', '-D', '-m', '0600', '/dev/null', '/etc/svc-gateway/env'],
      ['systemctl', 'daemon-reload'],
      ['systemctl', 'enable', '--now', 'svc-gateway'],
      ['journalctl', '-u', 'svc-gateway'],
    ]);
    const unit = read('deploy/systemd/svc-gateway.service');
    expect(unit).toContain('\nEnvironmentFile=-/etc/svc-gateway/env\n');
    expect(unit).toContain('\nWantedBy=multi-user.target\n');
    expect(JSON.parse(read('package.json')).scripts).toHaveProperty('pack');
  });

  test('makes a key that reads metrics, and checks the rules', async () => {
    const { output } = typed(BLOCKS[4]!);
    const [key = ''] = /\bsvc_\w+/.exec(output) ?? [];
    expect((await gateway.call('GET', '/metrics', undefined, key)).status).toBe(200);
    const rules = [...BLOCKS[4]!.matchAll(/^promtool (?:check|test) rules (\S+)$/gm)].map(([, path]) => path!);
    expect(rules).toEqual(['deploy/prometheus/svc-gateway.rules.yaml', 'deploy/prometheus/svc-gateway.test.yaml']);
  });

  test('names commands of svc that there are in its text', async () => {
    const named = [...PAGE.matchAll(/`svc ([^`]+)`/g)].map(([, words]) => words!);
    expect(named).toEqual(['serve --check', 'serve --print-config', 'status']);
    for (const words of named)
      expect((await parseCommandLine(COMMANDS, GROUPS, words.split(' '))).kind).toBe('command');
  });
});

/** The key that `--from-literal=key=value`, or `--from-file=path`, puts into a secret. */
function keyOfSecret(word: string): string {
  const [, literal, file] = /^--from-(?:literal=([^=]+)=.+|file=([^=/]+))$/.exec(word) ?? [];
  const key = literal ?? file;
  if (key === undefined) throw new Error(`kubectl takes no ${word} for a secret`);
  return key;
}

/** Puts what `--set a.b=c` and `--set-file a.b=path` say among the values; `\.` is a dot within a key. */
function put(values: Values, words: readonly string[]): void {
  for (let at = 0; at < words.length; at += 2) {
    const [flag = '', setting = ''] = words.slice(at);
    const [, path = '', text = ''] = /^([^=]+)=(.+)$/.exec(setting) ?? [];
    expect(['--set', '--set-file']).toContain(flag);
    const keys = path.split(/(?<!\\)\./).map((key) => key.replaceAll('\\.', '.'));
    const last = keys.pop()!;
    let place = values;
    for (const key of keys) place = place[key] as Values;
    place[last] = flag === '--set-file' ? read(text) : /^\d+$/.test(text) ? Number(text) : text;
  }
}
