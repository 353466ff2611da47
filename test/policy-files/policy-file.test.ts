import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  loadPolicies,
  loadPolicyCasesText,
  loadPolicyTexts,
  renderPolicyProblem,
} from '../../src/policy-files/policy-file.ts';

const loadText = (text: string) => loadPolicyTexts([{ file: 'p.yaml', text }]);

/** Returns the terminal's lines about a text that is refused. */
function refusals(text: string): readonly string[] {
  const loaded = loadText(text);
  if (loaded.ok) throw new Error('the text was accepted');
  return loaded.fault.map(renderPolicyProblem);
}

describe('policy file', () => {
  test('fills every scope from one text of many documents', () => {
    const loaded = loadText(`
name: base
scope: global
rules:
  - { id: llm, actions: [llm.call], effect: allow }
---
# A document may be empty.
---
name: team
scope: team:acme/search
rules:
  - { id: web, resources: ["web_*"], effect: allow }
`);
    expect(loaded.ok && loaded.value.policies.summary().documents).toEqual([
      { name: 'base', scope: 'global', ruleCount: 1, source: 'p.yaml' },
      { name: 'team', scope: 'team:acme/search', ruleCount: 1, source: 'p.yaml' },
    ]);
  });

  test('a set that can allow nothing loads with a warning', () => {
    const warnings = (text: string) => {
      const loaded = loadText(text);
      return loaded.ok ? loaded.value.warnings : loaded.fault;
    };
    expect(warnings('')).toEqual(['There are no policies, so every check will be denied.']);
    expect(warnings('name: a\nscope: global\nrules: [{ id: no, effect: deny }]')).toEqual([
      'No rule allows anything, so every check will be denied.',
    ]);
    expect(warnings('name: a\nscope: global\nrules: [{ id: yes, effect: allow }]')).toEqual([]);
  });

  test('an allow that an unconditional deny covers is reported with its place', () => {
    const loaded = loadText(`name: base
scope: global
rules:
  - { id: no-prod, actions: ["deploy.*"], resources: ["prod-*", "live"], effect: deny }
  - { id: night, effect: deny, when: attributes.hour < 6 }
---
name: team
scope: team:acme/ops
rules:
  - { id: web, effect: allow }
  - { id: ship, actions: ["deploy.app", "deploy.*"], resources: ["live", "prod-?-*"], effect: allow }
  - { id: stage, actions: ["deploy.app"], resources: ["prod-eu", "stage"], effect: allow }
`);
    expect(loaded.ok && loaded.value.warnings).toEqual([
      'p.yaml:11:5: rules[1]: rule ship can never allow: rule no-prod of policy base denies everything it matches.',
    ]);
  });

  test.each([
    [
      'a sequence that never ends',
      'name: a\nscope: global\nrules: [\n',
      'p.yaml:4:1: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['a tab', '\tname: x', 'p.yaml:1:1: Tabs are not allowed as indentation'],
    ['a key given twice', 'name: a\nscope: global\nname: b\nrules: []\n', 'p.yaml:3:1: Map keys must be unique'],
    [
      'a tag',
      'name: !!js/function x\nscope: global\nrules: []\n',
      'p.yaml:1:7: Unresolved tag: tag:yaml.org,2002:js/function',
    ],
    [
      'nesting without end',
      '['.repeat(20_000),
      expect.stringMatching(/^p\.yaml:1:\d+: the text is nested too deeply to be a policy$/),
    ],
    [
      'a text that is no mapping',
      'just text',
      'p.yaml:1:1: a policy document must be a mapping with the keys name, scope, rules, budget, limits',
    ],
    ['no name', 'scope: global\nrules: []\n', 'p.yaml:1:1: name is missing'],
    [
      'a name that is no text',
      'scope: global\nname: 5\nrules: []\n',
      'p.yaml:2:7: name: must be a string of 1 to 128 printable characters, without spaces at either end; this is a number',
    ],
    ['no rules', 'name: a\nscope: global\n', 'p.yaml:1:1: rules is missing'],
    [
      'a scope of the wrong depth',
      'name: a\nscope: team:acme\nrules: []\n',
      'p.yaml:2:8: scope: must be global, org:<id>, team:<org>/<team> or agent:<org>/<team>/<agent>',
    ],
    [
      'an unknown key',
      'name: a\nscope: global\nrule: []\nrules: []\n',
      'p.yaml:3:1: rule: unknown key; did you mean rules?',
    ],
    [
      'a key that would reach the prototype',
      'name: a\nscope: global\nrules: []\n__proto__: { a: 1 }\n',
      'p.yaml:4:1: __proto__: unknown key; valid keys are name, scope, rules, budget, limits',
    ],
    [
      'an unknown key of a rule',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    resource: ["*"]\n',
      'p.yaml:6:5: rules[0].resource: unknown key; did you mean resources?',
    ],
    [
      'a rule id given twice',
      'name: a\nscope: global\nrules:\n  - { id: x, effect: allow }\n  - { id: x, effect: deny }\n',
      'p.yaml:5:11: rules[1].id: x is also the id of rules[0]; ids must be unique within a document',
    ],
    ['a rule without effect', 'name: a\nscope: global\nrules:\n  - id: x\n', 'p.yaml:4:5: rules[0]: effect is missing'],
    [
      'an effect there is not',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: audit\n',
      'p.yaml:5:13: rules[0].effect: must be allow, require_approval or deny',
    ],
    [
      'actions that are no list',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    actions: tool.call\n',
      'p.yaml:6:14: rules[0].actions: must be a list of patterns such as ["web_*"]; this is a string of 9 characters',
    ],
    [
      'a list that names nothing',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    actions: []\n',
      'p.yaml:6:14: rules[0].actions: is empty; omit actions to match all',
    ],
    [
      'a pattern that is no text',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    actions:\n      - tool.call\n      - 5\n',
      'p.yaml:8:9: rules[0].actions[1]: must be a pattern of 1 to 512 characters; this is a number',
    ],
    [
      'a budget out of place',
      'name: a\nscope: agent:x/y/z\nrules: []\nbudget: { team_daily_limit_usd: 5 }\n',
      'p.yaml:4:11: budget.team_daily_limit_usd: is only for a wider scope; of scope agent, valid keys are monthly_limit_usd, daily_limit_usd',
    ],
    [
      'a budget with a mistake',
      'name: a\nscope: global\nbudget:\n  daily_limit_usd: lots\n',
      'p.yaml:4:20: budget.daily_limit_usd: must be an amount in US dollars from 0 to 1000000000',
    ],
    [
      'an unknown key of a budget',
      'name: a\nscope: global\nbudget:\n  weekly_limit_usd: 5\n',
      'p.yaml:4:3: budget.weekly_limit_usd: unknown key; valid keys are monthly_limit_usd, daily_limit_usd, org_monthly_limit_usd, org_daily_limit_usd, team_monthly_limit_usd, team_daily_limit_usd, agent_monthly_limit_usd, agent_daily_limit_usd, timezone, action_on_exceed',
    ],
    [
      'a pattern that YAML takes for an alias',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    actions: [*.read]\n',
      'p.yaml:6:15: a pattern that begins with * must be in quotes: "*.read"',
    ],
    [
      'a reason with a colon',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: deny\n    reason: frozen: ask security\n',
      "p.yaml:6:13: Nested mappings are not allowed in compact mappings; if YAML misreads a reason, for instance one with a colon, put it in quotes: '…'",
    ],
    [
      'a lone star',
      'name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    actions: [*]\n',
      'p.yaml:6:15: a pattern that begins with * must be in quotes: "*"',
    ],
    [
      'a name given twice',
      'name: a\nscope: global\nrules: []\n---\nname: a\nscope: org:x\nrules: []\n',
      'p.yaml:5:7: name: a is also the name of a policy in p.yaml; names must be unique',
    ],
  ])('%s is refused at its place', (_, text, problem) => {
    expect(refusals(text)).toEqual([problem]);
  });

  test('aliases are refused before they can multiply', () => {
    const bomb = [
      'a: &a [x, x]',
      ...'bcdefghijk'.split('').map((name, i) => `${name}: &${name} [${`*${'abcdefghij'[i]}, `.repeat(9)}x]`),
    ].join('\n');
    expect(refusals(bomb).slice(0, 1)).toEqual(['p.yaml:2:8: aliases such as *a are not allowed in policies']);
  });

  const rule = (when: string) => `name: a\nscope: global\nrules:\n  - id: x\n    effect: allow\n    when: ${when}\n`;

  test.each([
    ['plain', 'attributes.size < 10 && agnet.org_id == "x"', 'p.yaml:6:35: rules[0].when: Unknown variable: agnet'],
    ['double-quoted', '"1 +"', 'p.yaml:6:15: rules[0].when: Unexpected token: EOF'],
    ['single-quoted', "'oops == 1'", 'p.yaml:6:12: rules[0].when: Unknown variable: oops'],
    [
      'in a literal block',
      '|\n      attributes.size < 10 &&\n        oops == 1',
      'p.yaml:8:9: rules[0].when: Unknown variable: oops',
    ],
    [
      'folded, where only the beginning is known',
      '>-\n      attributes.size < 10 &&\n      oops == 1',
      'p.yaml:6:11: rules[0].when: Unknown variable: oops',
    ],
    ['of the wrong type', 'true', 'p.yaml:6:11: rules[0].when: must be a CEL expression in quotes; this is a boolean'],
    ['that is no condition', 'resource', 'p.yaml:6:11: rules[0].when: must evaluate to true or false, not to string'],
  ])('a bad condition %s is refused at its character', (_, when, problem) => {
    expect(refusals(rule(when))).toEqual([problem]);
  });

  const QUOTE =
    "; if YAML misreads an expression, write it on lines of its own after `when: |`, or put it in quotes: '…'";
  test.each([
    [
      'a negation, which YAML takes for a tag',
      '!has(attributes.x)',
      `p.yaml:6:11: Unresolved tag: !has(attributes.x)${QUOTE}`,
    ],
    ['a text at the beginning', '"a" in attributes.tags', `p.yaml:6:15: Unexpected scalar at node end${QUOTE}`],
    [
      'a choice',
      'attributes.a ? attributes.b : false',
      `p.yaml:6:11: Nested mappings are not allowed in compact mappings${QUOTE}`,
    ],
  ])('a condition that YAML misreads is refused with how to write it: %s', (_, when, problem) => {
    expect(refusals(rule(when))).toEqual([problem]);
    expect(loadText(rule(`|\n      ${when}`)).ok).toBe(true);
    expect(loadText(rule(`'${when}'`)).ok).toBe(true);
  });

  test('all mistakes are reported at once, from top to bottom', () => {
    expect(
      refusals(`name: a
scopes: global
rules:
  - id: x
    effects: allow
  - id: x
    effect: maybe
    when: nope > 1
  - not a rule
---
name: b
scope: org:acme
rules: []
budget: { daily_limit: 1 }
`),
    ).toEqual([
      'p.yaml:1:1: scope is missing',
      'p.yaml:2:1: scopes: unknown key; did you mean scope?',
      'p.yaml:4:5: rules[0]: effect is missing',
      'p.yaml:5:5: rules[0].effects: unknown key; did you mean effect?',
      'p.yaml:6:9: rules[1].id: x is also the id of rules[0]; ids must be unique within a document',
      'p.yaml:7:13: rules[1].effect: must be allow, require_approval or deny',
      'p.yaml:8:11: rules[1].when: Unknown variable: nope',
      'p.yaml:9:5: rules[2]: a rule must be a mapping with the keys id, actions, resources, when, effect, reason, remedy, approval, obligations; this is a string of 10 characters',
      'p.yaml:14:11: budget.daily_limit: unknown key; valid keys are monthly_limit_usd, daily_limit_usd, team_monthly_limit_usd, team_daily_limit_usd, agent_monthly_limit_usd, agent_daily_limit_usd',
    ]);
  });

  test('all mistakes of a budget are reported at once, too', () => {
    expect(
      refusals(
        'name: a\nscope: global\nbudget:\n  daily_limit_usd: -5\n  timezone: Mars/Base\n  action_on_exceed: warn\n',
      ),
    ).toEqual([
      'p.yaml:4:20: budget.daily_limit_usd: must be an amount in US dollars from 0 to 1000000000',
      'p.yaml:5:13: budget.timezone: must be an IANA time zone name, such as Europe/Berlin',
      'p.yaml:6:21: budget.action_on_exceed: must be deny, the only supported action',
    ]);
  });

  test('reports a document without a name or scope, and no follow-on mistakes', () => {
    expect(
      refusals('scope: global\nrules: []\n---\nscope: global\nrules: []\n---\nname: c\nrules: []\nbudget: {}\n'),
    ).toEqual(['p.yaml:1:1: name is missing', 'p.yaml:4:1: name is missing', 'p.yaml:7:1: scope is missing']);
  });

  test('a mistake in a file of cases is reported at its place', () => {
    const loaded = loadPolicyCasesText(
      'cases:\n  - name: one\n    agent: acme\n    action: tool.call\n    resouce: x\n    expect: maybe\n',
      'p.test.yaml',
    );
    expect(loaded.ok ? [] : loaded.fault.map(renderPolicyProblem)).toEqual([
      'p.test.yaml:5:5: cases[0].resouce: unknown key; did you mean resource?',
      'p.test.yaml:2:5: cases[0]: resource is missing',
      'p.test.yaml:3:12: cases[0].agent: must be <org>/<team>/<agent>, or /<team>/<agent> for an agent without an org',
      'p.test.yaml:6:13: cases[0].expect: must be allow, require_approval or deny',
    ]);
  });

  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'policy-file-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  test('reads a folder by name: policies only, no subfolders, hidden files or cases', async () => {
    const path = join(folder, 'set');
    await mkdir(join(path, 'deeper.yaml'), { recursive: true });
    const write = (name: string, text: string) => writeFile(join(path, name), text);
    await rm(join(path, 'deeper.yaml'), { recursive: true });
    await mkdir(join(path, 'deeper'));
    await write('b.yml', 'name: b\nscope: global\nrules: []');
    await write('a.yaml', 'name: a\nscope: global\nrules: []');
    await write('.hidden.yaml', 'nonsense');
    await write('a.test.yaml', 'cases: []');
    await write('README.md', '# nonsense');
    await write('deeper/c.yaml', 'nonsense');
    const loaded = await loadPolicies(path);
    expect(loaded.ok && loaded.value.files).toEqual([join(path, 'a.yaml'), join(path, 'b.yml')]);
  });

  test('a name used in two files is refused in the second', async () => {
    const path = join(folder, 'twins');
    await mkdir(path);
    for (const file of ['a.yaml', 'b.yaml']) await writeFile(join(path, file), 'name: same\nscope: global\nrules: []');
    const loaded = await loadPolicies(path);
    expect(loaded.ok ? [] : loaded.fault.map(renderPolicyProblem)).toEqual([
      `${join(path, 'b.yaml')}:1:7: name: same is also the name of a policy in a.yaml; names must be unique`,
    ]);
  });

  test.runIf(process.platform === 'linux')(
    'a file or folder whose name is not UTF-8 is reported with what to do',
    async () => {
      const old = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('b\u00fcro', 'latin1')]);
      const policy = Buffer.concat([old, Buffer.from('/b\u00fcro.yaml', 'latin1')]);
      await mkdir(old);
      await writeFile(policy, '# nothing yet');
      const refusals = async (path: string) => {
        const loaded = await loadPolicies(path);
        return loaded.ok ? [] : loaded.fault.map(renderPolicyProblem);
      };
      expect(await refusals(old.toString())).toEqual([`${folder}/b\ufffdro: has a name that is not UTF-8; rename it`]);
      await rename(old, join(folder, 'latin'));
      expect(await refusals(join(folder, 'latin'))).toEqual([
        `${folder}/latin/b\ufffdro.yaml: has a name that is not UTF-8; rename it`,
      ]);
    },
  );

  test('a file that cannot be read as a policy says why', async () => {
    const refusal = async (name: string) => {
      const loaded = await loadPolicies(join(folder, name));
      return loaded.ok ? [] : loaded.fault.map(({ line, column, problem }) => [line, column, problem]);
    };
    await writeFile(join(folder, 'large.yaml'), `# ${'x'.repeat(1024 * 1024)}`);
    await writeFile(join(folder, 'bytes.yaml'), new Uint8Array([0xff, 0xfe, 0x00]));
    await writeFile(join(folder, 'emptied.yaml'), '');
    await writeFile(join(folder, 'nothing.yaml'), '# nothing yet');
    expect(await refusal('emptied.yaml')).toEqual([
      [undefined, undefined, 'is empty; if that is intended, write a comment into it'],
    ]);
    expect(await refusal('nothing.yaml')).toEqual([]);
    expect(await refusal('absent.yaml')).toEqual([[undefined, undefined, 'does not exist']]);
    expect(await refusal('large.yaml')).toEqual([[undefined, undefined, 'is larger than 1048576 bytes']]);
    expect(await refusal('bytes.yaml')).toEqual([[undefined, undefined, 'is not UTF-8 text']]);
    if (process.getuid?.() === 0) return; // root reads everything
    await writeFile(join(folder, 'locked.yaml'), '');
    await chmod(join(folder, 'locked.yaml'), 0);
    expect(await refusal('locked.yaml')).toEqual([[undefined, undefined, 'is not readable by this user']]);
  });
});
