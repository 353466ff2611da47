import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type CliHome, createCliHome } from '../support/cli.ts';

const URL = 'https://gateway.example.com';
const KEY = 'svc_1234567890_abcdefghijklmnopqrstuvwxyz';

let cli: CliHome;
describe('contexts', () => {
  beforeEach(() => {
    cli = createCliHome();
    mkdirSync(cli.folder, { mode: 0o700 });
  });
  afterEach(() => cli.remove());

  const write = (name: string, text: string): void => writeFileSync(join(cli.folder, name), text, { mode: 0o600 });

  /** A session on the context `prod` with so much time left. */
  function holdSession(leftSecs: number): void {
    write('config.yaml', stringify({ current_context: 'prod', contexts: { prod: { api_url: URL } } }));
    write(
      'credentials.yaml',
      stringify({
        sessions: {
          prod: {
            api_url: URL,
            token: 'eyJhbGciOiJFZERTQSJ9.e30.AAAA',
            expires_at: Math.floor(Date.now() / 1000) + leftSecs,
            scopes: ['read'],
            source_key: KEY,
          },
        },
      }),
    );
  }

  test.each([
    ['current_context: 7\n', 'current_context must be a name'],
    ['contexts: [prod]\n', 'contexts must be a mapping'],
    ['contexts:\n  prod: https://gateway.example.com\n', 'contexts.prod must be a mapping'],
    ['contexts:\n  prod: { url: https://gateway.example.com }\n', 'contexts.prod.api_url must be a URL'],
    [
      'contexts:\n  prod: { api_url: https://gateway.example.com, api_key: 7 }\n',
      'contexts.prod.api_key must be a string',
    ],
    [
      'contexts:\n  prod:\n    api_url: https://gateway.example.com\n    api_key: *svc_secret\n',
      'it has an alias, written with *, that refers to nothing',
    ],
  ])('a mistake in the file of contexts is named, and the file stays (%j)', async (text, problem) => {
    write('config.yaml', text);
    for (const args of [
      ['context', 'ls'],
      ['context', 'add', 'other', URL],
    ]) {
      expect(await cli.run(args)).toEqual({
        status: 1,
        stdout: '',
        stderr: `error: ${join(cli.folder, 'config.yaml')} cannot be used: ${problem}\nFix it, or move it away and add your contexts again with \`svc context add\`.\n`,
      });
    }
    expect(readFileSync(join(cli.folder, 'config.yaml'), 'utf8')).toBe(text);
  });

  test('files of a killed command, which may hold a key, are removed by the next', async () => {
    const [half, waited, waits] = [
      'config.yaml.0a1b2c3d.partial',
      'config.yaml.lock.123.0123456789abcdef',
      'config.yaml.lock.124.0123456789abcdef',
    ];
    for (const name of [half, waited, waits, 'config.yaml.bak', 'config.yaml.20260131']) write(name, KEY);
    const longAgo = new Date(Date.now() - 2 * 3_600_000);
    for (const name of [waited, 'config.yaml.bak']) utimesSync(join(cli.folder, name), longAgo, longAgo);
    expect((await cli.run(['context', 'add', 'prod', URL])).status).toBe(0);
    expect(readdirSync(cli.folder).sort()).toEqual(['config.yaml', 'config.yaml.20260131', 'config.yaml.bak', waits]);
  });

  test('a file in place of the folder is reported without system jargon', async () => {
    rmSync(cli.folder, { recursive: true });
    writeFileSync(cli.folder, '');
    expect(await cli.run(['context', 'add', 'prod', URL])).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: cannot write ${join(cli.folder, 'config.yaml')}: a part of the path is a file\n${cli.folder} must be a folder that you own and can write to.\n`,
    });
  });

  test('a context whose key was to be stored is not added without one', async () => {
    expect(await cli.run(['context', 'add', 'prod', URL, '--with-key'], { input: '\n' })).toEqual({
      status: 1,
      stdout: '',
      stderr: 'API key: \nerror: no API key provided\nTo store none, omit --with-key and run `svc login` later.\n',
    });
    expect(JSON.parse((await cli.run(['context', 'ls', '-o', 'json'])).stdout)).toEqual({ contexts: [] });
  });

  test('the listing and whoami report an expired session', async () => {
    for (const [leftSecs, listed, told] of [
      [-1, 'expired', 'expired; the next command renews it'],
      [600, 'valid', 'expires in about 10 minutes'],
    ] as const) {
      holdSession(leftSecs);
      expect((await cli.run(['context', 'ls'])).stdout).toMatch(new RegExp(`^prod +yes +${URL} +- +${listed}$`, 'm'));
      expect((await cli.run(['whoami'])).stdout).toMatch(new RegExp(`^session +${told}$`, 'm'));
      expect(JSON.parse((await cli.run(['whoami', '-o', 'json'])).stdout)).toMatchObject({
        logged_in: true,
        expired: leftSecs < 0,
        expires_in_secs: leftSecs < 0 ? 0 : expect.closeTo(leftSecs, -2),
      });
    }
  });

  test('removing a context removes its session, with a notice', async () => {
    holdSession(600);
    expect((await cli.run(['context', 'rm', 'prod'])).stdout).toBe('Removed context prod and its session.\n');
    expect(readFileSync(join(cli.folder, 'credentials.yaml'), 'utf8')).not.toContain('eyJ');
    await cli.run(['context', 'add', 'prod', URL]);
    expect((await cli.run(['context', 'rm', 'prod'])).stdout).toBe('Removed context prod.\n');
  });
});
