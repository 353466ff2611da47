import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CliHome, createCliHome, SVC } from '../support/cli.ts';
import { answerJson, type FakeServer, startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

/**
 * Counted from the start of its process, the command gives up within a second, which a busy machine takes for the start
 * alone. With this it counts from later on.
 */
const startedLater = (seconds: number): string => `--import data:text/javascript,process.uptime=()=>-${seconds}`;

let gateway: GatewayHere;
let cli: CliHome;

describe('completion of values at the gateway', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
    writeFileSync(join(cli.home, 'svc'), `#!/bin/sh\nexec "${process.execPath}" "${SVC}" "$@"\n`, { mode: 0o755 });
    writeFileSync(join(cli.home, 'svc.bash'), (await cli.run(['completion', 'bash'])).stdout);
    const env = { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY };
    for (const agent of ['acme/search/crawler', 'acme/ops/wild', 'other/ops/calm', '/ops/lone'])
      await cli.run(['agents', 'register', agent], { env });
    for (const op of ['w1:1', 'w1:2', 'x1:1'])
      await cli.run(['check', '--agent', 'acme/ops/wild', '--action', 'tool.call', '--op', op], { env });
    await cli.run(['context', 'add', 'prod', gateway.url, '--with-key'], { env });
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  /** Answers with all that bash offers and shows behind these words. */
  async function inBash(words: string, url: string | undefined = gateway.url, key = ADMIN_KEY): Promise<string> {
    const pieces = words.split(' ').map((word) => `'${word}'`);
    const script = `source svc.bash; COMP_WORDS=(svc ${pieces.join(' ')}); COMP_CWORD=${pieces.length}; _svc; echo "\${COMPREPLY[@]}"`;
    const child = spawn('bash', ['-c', `{ ${script}; } 2>&1`], {
      cwd: cli.home,
      env: {
        PATH: `${cli.home}:${process.env.PATH}`,
        HOME: cli.home,
        NODE_OPTIONS: startedLater(30),
        SVC_CLI_API_URL: url,
        SVC_CLI_API_KEY: key,
      },
    });
    const shown: Buffer[] = [];
    for await (const chunk of child.stdout) shown.push(chunk as Buffer);
    return Buffer.concat(shown).toString().trim();
  }

  async function fakeGateway(answer: Parameters<typeof startFakeServer>[0]): Promise<FakeServer> {
    const fake = await startFakeServer(answer);
    onTestFinished(() => fake.stop());
    return fake;
  }

  test.each([
    ['agents rm ', '/ops/lone acme/ops/wild acme/search/crawler other/ops/calm'],
    ['agents rm acme/s', 'acme/search/crawler'],
    ['logs --agent acme/', 'acme/ops/wild acme/search/crawler'],
    ['ops ls --org ', 'acme other'],
    ['ops ls --org = o', 'other'],
    ['ops pause ', 'w1:1 w1:2 x1:1'],
    ['ops pause x', 'x1:1'],
    ['logs --op w', 'w1:1 w1:2'],
    // Bash takes an id for three words, and replaces the last.
    ['ops pause w1 : ', '1 2'],
    ['ops pause x1:1 w1 : 2', '2'],
    ['logs --op w1 :', '1 2'],
    ['ops pause --st', ''],
    ['ops pause --te', '--team'],
    ['--api-url http : //127.0.0.1 : 9 ops ls --org ', ''],
  ])('svc %s is completed by "%s"', async (words, values) => {
    expect(await inBash(words)).toBe(values);
  });

  test('the values are those of the context that is named before them', async () => {
    expect(await inBash('--context prod ops ls --org a', 'http://127.0.0.1:9')).toBe('acme');
    expect(await inBash('--context = prod ops ls --org a', 'http://127.0.0.1:9')).toBe('acme');
  });

  test('names that a shell could expand are left out, and at most 100 are shown', async () => {
    const hostile = [
      '$(touch owned)',
      '`touch owned`',
      'a;touch owned',
      '*',
      '-rf',
      '~',
      'a b',
      "'",
      '\u001b[31m',
      'a\nb',
    ];
    const names = [...hostile, ...Array.from({ length: 150 }, (_, at) => `n${at}`)];
    const fake = await fakeGateway((_, response) =>
      answerJson(response, 200, {
        agents: names.map((name) => ({ org_id: name, team_id: 't', agent_id: name })),
        groups: names.map((name) => ({ org_id: name })),
        ops: names.map((name) => ({ op_id: `${name}:1` })),
        next_cursor: null,
      }),
    );
    for (const [words, first] of [
      ['agents rm ', 'n0/t/n0'],
      ['ops ls --org ', 'n0'],
      ['ops pause ', 'n0:1'],
    ] as const) {
      const shown = (await inBash(words, fake.url)).split(' ');
      expect({ count: shown.length, first: shown[0] }).toEqual({ count: 100, first });
      expect(shown.filter((value) => !/^n\d+/.test(value))).toEqual([]);
    }
    expect(existsSync(join(cli.home, 'owned'))).toBe(false);
  });

  test('no gateway, a wrong key or another server: nothing is shown', async () => {
    const fake = await fakeGateway((_, response) => void response.end('<html>'));
    const words = 'ops ls --org ';
    expect({
      absent: await inBash(words, 'http://127.0.0.1:9'),
      wrongKey: await inBash(words, gateway.url, 'svc_wrong'),
      noKey: await inBash(words, gateway.url, ''),
      noUrl: await inBash(words, 'ftp://x'),
      other: await inBash(words, fake.url),
    }).toEqual({ absent: '', wrongKey: '', noKey: '', noUrl: '', other: '' });
    // Options are offered where there are no values.
    expect(await inBash('agents rm ', 'http://127.0.0.1:9')).toMatch(/^--context --api-url /);
  });

  test('a gateway that hangs is not waited for, and the command has no error', async () => {
    let askedMs = 0;
    const fake = await fakeGateway(() => {
      askedMs = performance.now();
    });
    const result = await cli.start(['complete', 'op_id'], {
      env: { NODE_OPTIONS: startedLater(3), SVC_CLI_API_URL: fake.url, SVC_CLI_API_KEY: ADMIN_KEY },
    });
    expect(result).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(performance.now() - askedMs).toBeLessThan(19_000); // any other command awaits an answer for 20 s
    expect(fake.requests).toHaveLength(1);
  });

  test('no help names the command that the scripts call', async () => {
    expect((await cli.run(['--help'])).stdout).not.toMatch(/^ {2}complete /m);
    expect(await inBash('comple')).toBe('completion');
  });
});
