import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { type CliHome, createCliHome, SVC } from '../support/cli.ts';

let cli: CliHome;

describe('policy', () => {
  beforeEach(() => {
    cli = createCliHome();
  });
  afterEach(() => cli.remove());

  const write = (name: string, text: string): string => {
    const path = join(cli.home, name);
    writeFileSync(path, text);
    return path;
  };

  const POLICY = `name: search
scope: team:acme/search
rules:
  - id: web-only
    actions: ["tool.call"]
    resources: ["web_*"]
    when: attributes.size < 1000
    effect: allow
    reason: web tools only
  - id: no-mail
    actions: ["tool.call"]
    resources: ["send_mail"]
    effect: deny
    reason: agents do not send mail
`;

  test('every shipped policy passes its cases', async () => {
    expect(await cli.run(['policy', 'test', 'examples/policies'], { cwd: PACKAGE_ROOT })).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringMatching(/\d+ cases passed\n$/),
    });
  });

  test('a failed case is shown as a difference and in the exit status', async () => {
    write('search.yaml', POLICY);
    const file = write(
      'search.test.yaml',
      `cases:
  - { name: searches, agent: acme/search/a1, action: tool.call, resource: web_search, attributes: { size: 9 }, expect: allow, rule: web-only }
  - { name: sends mail, agent: acme/search/a1, action: tool.call, resource: send_mail, expect: allow }
  - { name: too large, agent: acme/search/a1, action: tool.call, resource: web_search, attributes: { size: 9000 }, expect: deny, rule: no-mail }
`,
    );
    const { status, stdout, stderr } = await cli.run(['policy', 'test', file]);
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(stdout.replaceAll(cli.home, '~')).toBe(`FAIL  ~/search.test.yaml against ~/search.yaml: 3 cases

  sends mail
    acme/search/a1 requests tool.call on send_mail
    - allow
    + deny by rule no-mail
      agents do not send mail (rule no-mail of policy search)


  too large
    acme/search/a1 requests tool.call on web_search
    - deny by rule no-mail
    + deny
      no policy allows tool.call on web_search for acme/search/a1

2 of 3 cases failed
`);
    const json = JSON.parse((await cli.run(['policy', 'test', file, '-o', 'json'])).stdout);
    expect({ passed: json.passed, failed: json.failed, difference: json.files[0].cases[1].difference }).toEqual({
      passed: 1,
      failed: 2,
      difference: 'expected allow, got deny: agents do not send mail (rule no-mail of policy search)',
    });
  });

  test('mistakes in policies and cases are named by file, line and column, all at once', async () => {
    const policy = write(
      'bad.yaml',
      POLICY.replace('attributes.size < 1000', 'attributes.size <').replace('effect: deny', 'effect: maybe'),
    );
    const { status, stdout, stderr } = await cli.run(['policy', 'validate', policy]);
    expect(status).toBe(1);
    expect(stdout.replaceAll(cli.home, '~')).toMatch(
      /^~\/bad\.yaml:7:\d+: rules\[0\]\.when: .+\n~\/bad\.yaml:13:\d+: rules\[1\]\.effect: .+\n$/,
    );
    expect(stderr).toBe('error: 2 problems in these files\nEach is listed with its line and column.\n');
    expect(JSON.parse((await cli.run(['policy', 'validate', policy, '-o', 'json'])).stdout)).toMatchObject({
      ok: false,
      problems: [
        { line: 7, path: 'rules[0].when' },
        { line: 13, path: 'rules[1].effect' },
      ],
    });
    write('search.yaml', POLICY);
    const cases = write('search.test.yaml', 'cases:\n  - { agent: acme, action: x, resource: y, expect: allow }\n');
    expect((await cli.run(['policy', 'test', cases])).stdout.replaceAll(cli.home, '~')).toMatch(
      /^~\/search\.test\.yaml:2:\d+: cases\[0\]\.agent: /,
    );
    expect(await cli.run(['policy', 'validate', 'absent.yaml'], { cwd: cli.home })).toEqual({
      status: 1,
      stdout: 'absent.yaml: does not exist\n',
      stderr: 'error: 1 problem in these files\nCheck the names of the files.\n',
    });
  });

  test('valid policies are counted; cases among them are left out', async () => {
    write('search.yaml', POLICY);
    write('search.test.yaml', 'cases: []\n');
    expect(await cli.run(['policy', 'validate', 'search.yaml', 'search.test.yaml'], { cwd: cli.home })).toEqual({
      status: 0,
      stdout: '1 document with 2 rules in 1 file: no problems.\n',
      stderr: '',
    });
    expect((await cli.run(['policy', 'validate', cli.home])).stdout).toBe(
      '1 document with 2 rules in 1 file: no problems.\n',
    );
  });

  test('a folder may hold more policies than a process may open files', () => {
    for (let nth = 0; nth < 200; nth += 1) write(`p${nth}.yaml`, POLICY.replace('name: search', `name: p${nth}`));
    const limited = ['-c', 'ulimit -n 100; exec "$@"', 'sh', process.execPath, SVC, 'policy', 'validate', cli.home];
    expect(execFileSync('sh', limited, { encoding: 'utf8' })).toBe(
      '200 documents with 400 rules in 200 files: no problems.\n',
    );
  });

  test('validate recognises files of tests and says what to run', async () => {
    write('search.test.yaml', 'cases: []\n');
    expect(await cli.run(['policy', 'validate', 'search.test.yaml'], { cwd: cli.home })).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'error: search.test.yaml contains policy tests, not policies\nRun them with `svc policy test search.test.yaml`.\n',
    });
    expect(
      (await cli.run(['policy', 'validate', 'a.test.yml', 'search.test.yaml'], { cwd: cli.home })).stderr,
    ).toContain('Run them with `svc policy test a.test.yml search.test.yaml`.\n');
  });

  test('explain shows every document and rule, and which one decided', async () => {
    const policy = write(
      'search.yaml',
      `${POLICY}---\nname: others\nscope: org:globex\nrules:\n  - { id: all, actions: ["*"], effect: allow }\n`,
    );
    const { status, stdout } = await cli.run([
      'policy',
      'explain',
      '--policies',
      policy,
      '--agent',
      'acme/search/a1',
      '--action',
      'tool.call',
      '--resource',
      'web_search',
      '--attr',
      'size=12',
    ]);
    expect(status).toBe(0);
    expect(stdout).toBe(`allow  web tools only (rule web-only of policy search)

others  (org:globex, search.yaml): its scope does not reach the agent

search  (team:acme/search, search.yaml)
  web-only  allow  matched: allow  <- decided
  no-mail   deny   resource does not match
`);
  });

  test('explain shows the terms of an approval, and what a halt makes of the decision', async () => {
    const policy = write(
      'pay.yaml',
      'name: pay\nscope: org:acme\nrules:\n  - { id: ask, effect: require_approval, approval: { min: 2, expires: 90m, valid: 8h, approvers: ["role:admin", "key:ops"] } }\n',
    );
    const halts = write('halts.yaml', 'halts:\n  - { scope: org:acme, actions: ["money.*"], reason: leak }\n');
    const explain = (action: string, ...more: string[]) =>
      cli.run([
        ...['policy', 'explain', '--policies', policy, '--agent', 'acme/pay/a1', '--action', action],
        ...['--halts', halts, ...more],
      ]);
    expect(
      (await explain('mail.send')).stdout,
    ).toBe(`require_approval  needs an approval, required by rule ask of policy pay

pay  (org:acme, pay.yaml)
  ask  require_approval  matched: require_approval by 2 of role:admin, key:ops within 90m, valid for 8h  <- decided
`);
    expect((await explain('money.send')).stdout).toBe(`deny  a halt of org:acme is in force: leak

pay  (org:acme, pay.yaml)
  ask  require_approval  matched: require_approval by 2 of role:admin, key:ops within 90m, valid for 8h  <- overruled by a halt
`);
    expect(JSON.parse((await explain('money.send', '--output', 'json')).stdout)).toMatchObject({
      decision: {
        decision: 'require_approval',
        approval: { min: 2, expires_secs: 5_400, valid_secs: 28_800, approvers: ['role:admin', 'key:ops'] },
      },
      overruled_by: { cause: 'halt', reason: 'a halt of org:acme is in force: leak' },
    });
  });

  test('explain shows a failing condition, which denies, and why', async () => {
    const policy = write('search.yaml', POLICY);
    const { status, stdout } = await cli.run([
      'policy',
      'explain',
      '--policies',
      policy,
      '--agent',
      'acme/search/a1',
      '--action',
      'tool.call',
      '--resource',
      'web_search',
    ]);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `deny  the condition of rule web-only of policy search failed: No such key: size

search  (team:acme/search, search.yaml)
  web-only  allow  condition failed: No such key: size  <- decided
  no-mail   deny   resource does not match
`,
    });
  });

  test('explain rounds a cost up to a micro-dollar as a check does, within limits', async () => {
    const policy = write(
      'spend.yaml',
      'name: spend\nscope: org:acme\nrules:\n  - { id: free, actions: ["*"], when: "estimated_cost_usd == 0.0", effect: allow }\n',
    );
    const explain = (cost: string) =>
      cli.run([
        'policy',
        'explain',
        '--policies',
        policy,
        '--agent',
        'acme/search/a1',
        '--action',
        'a',
        '--resource',
        'r',
        '--cost',
        cost,
      ]);
    expect((await explain('0')).stdout).toMatch(/^allow /);
    expect((await explain('0.0000001')).stdout).toMatch(/^deny /);
    expect(await explain('1000001')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--cost must be an amount in US dollars from 0 to 1000000, such as 0.25'),
    });
  });

  test('without a path reads the policies of the gateway that would start here', async () => {
    const file = write('search.yaml', POLICY);
    expect((await cli.run(['policy', 'validate', '-o', 'json'], { env: { SVC_POLICY_PATH: file } })).stdout).toContain(
      JSON.stringify(file),
    );
    expect((await cli.run(['policy', 'validate'], { env: { SVC_POLICY_PATH: file } })).stdout).toBe(
      `1 document with 2 rules in 1 file: no problems.\nChecked ${file}, which a gateway started here would read.\n`,
    );
    for (const env of [{}, { SVC_POLICY_PATH: '' }]) {
      expect(
        JSON.parse((await cli.run(['policy', 'validate', '-o', 'json'], { env, cwd: cli.home })).stdout),
      ).toMatchObject({ ok: true, files: [expect.stringMatching(/starter\.yaml$/)] });
    }
  });

  test('policies that deny everything are valid, with a notice on standard error', async () => {
    const file = write('none.yaml', POLICY.replace('effect: allow', 'effect: deny'));
    const warning = 'No rule allows anything, so every check will be denied.';
    expect(await cli.run(['policy', 'validate', file])).toEqual({
      status: 0,
      stdout: '1 document with 2 rules in 1 file: no errors, 1 warning.\n',
      stderr: `warning: ${warning}\n`,
    });
    expect(JSON.parse((await cli.run(['policy', 'validate', file, '-o', 'json'])).stdout)).toMatchObject({
      ok: true,
      warnings: [warning],
    });
  });

  test('a folder without cases does not pass', async () => {
    expect(await cli.run(['policy', 'test', cli.home])).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(`^error: no \\*\\.test\\.yaml files in ${cli.home}\n`),
    });
  });
});
