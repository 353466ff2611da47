/** The tutorial of docs/policy-rollout.md, block by block, in a shell, against a gateway that it starts. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { SVC } from '../support/cli.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

const BLOCKS = [
  ...readFileSync(join(PACKAGE_ROOT, 'docs', 'policy-rollout.md'), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms),
].map(([, block = '']) => block);
const STARTS = /^svc serve\b.*\n/m;

/** All blocks in one shell keep its variables; each command that fails is named on standard output. */
const script = (blocks: readonly string[]): string =>
  [
    `svc() { "${process.execPath}" "${SVC}" "$@"; }`,
    `trap 'echo "ended with $?: $BASH_COMMAND"' ERR`,
    ...blocks.map((block) => block.replace(STARTS, '')),
  ].join('\n');

describe('the tutorial of a policy', () => {
  const folder = mkdtempSync(join(inject('scratch'), 'rollout-'));
  let gateway: TestGateway | undefined;
  afterAll(async () => void (await gateway?.stop()));

  function run(blocks: readonly string[]): Promise<string> {
    const env = { ...process.env, SVC_CLI_API_URL: gateway?.url ?? '', SVC_CLI_API_KEY: ADMIN_KEY, HOME: folder };
    const shell = spawn('bash', ['-c', script(blocks)], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (bytes) => (output += bytes));
    return new Promise((resolve) => shell.on('close', () => resolve(output)));
  }

  test('leads from an open gateway to an enforced policy, and back from a mistake', { timeout: 240_000 }, async () => {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(PACKAGE_ROOT, join(folder, 'node_modules', 'svc-gateway'));
    const [first = '', ...rest] = BLOCKS;
    expect(first).toMatch(STARTS);
    expect(await run([first])).toBe('');
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: join(folder, 'policies') } });
    const output = await run(rest);
    const failed = [...output.matchAll(/^ended with \d+/gm)].map(([line]) => line);
    expect(failed, output).toEqual(['ended with 3', 'ended with 1']); // a check that is denied, sets that differ
    expect(output).toContain('3 decided otherwise');
    expect(output).toContain('2 checks denied for want of a rule; 1 rule suggested');
    expect(output).toContain('3 cases passed');
    expect(output).toContain('    resources: ["translate"]');
    expect(output).toContain('They do not differ.');
  });
});
