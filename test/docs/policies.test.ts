/** The examples of docs/policies.md behave as they say. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseBudgetConfig } from '../../src/core/budget/config.ts';
import { enforceOnArguments } from '../../src/core/check/obligations.ts';
import { parsePolicyCases, runPolicyCases } from '../../src/core/policy/cases.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compileGlob } from '../../src/core/policy/glob.ts';
import { compilePolicies } from '../../src/core/policy/policy.ts';
import { readYaml } from '../../src/policy-files/policy-yaml.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const page = readFileSync(join(PACKAGE_ROOT, 'docs/policies.md'), 'utf8');
const sectionOf = (heading: string): string =>
  new RegExp(`^## ${heading}\\n([^]*?)(?=^## |(?![^]))`, 'm').exec(page)?.[1] ?? expect.fail(`no section ${heading}`);
const blockOf = (heading: string, language: string): string =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(sectionOf(heading))?.[1] ?? expect.fail(`no ${language}`);
const yamlOf = (heading: string): any => readYaml(blockOf(heading, 'yaml')).documents[0]!.raw;
/** The cells of the table with this heading, row by row. */
const tableOf = (heading: string, titles: string): string[][] => {
  const [, ...rows] = sectionOf(heading).split(`${titles}\n`)[1]!.split('\n');
  return rows
    .slice(
      0,
      rows.findIndex((row) => !row.startsWith('|')),
    )
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
};
const textsIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);

const policiesOf = (...raws: readonly unknown[]) => {
  const parsed = raws.map((raw, at) => parsePolicyDocument(raw, `document ${at}`));
  expect(parsed.flatMap(({ problems }) => problems)).toEqual([]);
  const compiled = compilePolicies(parsed.map(({ document }) => document!));
  return compiled.ok ? compiled.value : expect.fail(JSON.stringify(compiled.fault));
};
const check = (agent: string, action: string, resource = '') => {
  const [orgId = '', teamId = '', agentId = ''] = agent.split('/');
  return {
    agent: { orgId, teamId, agentId },
    action,
    resource,
    attributes: undefined,
    caller: undefined,
    estimatedCostMicroUsd: 0,
  };
};

describe('docs/policies.md', () => {
  test.each(tableOf('Patterns', '| pattern | matches | does not match |'))(
    'says what %s matches',
    (pattern, matching, others) => {
      const glob = compileGlob(textsIn(pattern!)[0]!);
      expect(textsIn(matching!).map((text) => [text, glob.matches(text)])).toEqual(
        textsIn(matching!).map((text) => [text, true]),
      );
      expect(textsIn(others!).map((text) => [text, glob.matches(text)])).toEqual(
        textsIn(others!).map((text) => [text, false]),
      );
      expect(textsIn(matching!).length * textsIn(others!).length).toBeGreaterThan(0);
    },
  );

  test('its table of what wins holds, in whatever order the documents are', () => {
    const rows = tableOf('What wins', '| global | team | answer |');
    expect(rows.length).toBe(5);
    for (const [global, team, answer] of rows) {
      const documents = [
        { name: 'g', scope: 'global', effect: global },
        { name: 't', scope: 'team:acme/search', effect: team },
      ]
        .filter(({ effect }) => effect !== '')
        .map(({ effect, ...document }) => ({ ...document, rules: [{ id: 'r', effect }] }));
      for (const order of [documents, documents.toReversed()]) {
        const { kind, policy } = policiesOf(...order).decide(check('acme/search/a1', 'tool.call'));
        const by = policy === undefined ? '' : policy === 'g' ? 'global' : "team's";
        const word = { allow: 'Allow', deny: 'Deny', require_approval: 'Pending' }[kind];
        expect(answer).toMatch(new RegExp(`^${word}`));
        if (answer!.includes(' rule')) expect(answer).toContain(by);
      }
    }
  });

  test('the cases it shows pass with the policy it shows', () => {
    const outcomes = readYaml(blockOf('Tests', 'yaml')).documents.flatMap(({ raw }) => {
      const cases = parsePolicyCases(raw);
      if (!cases.ok) return expect.fail(JSON.stringify(cases.fault));
      return runPolicyCases(policiesOf(yamlOf('Documents')), cases.value);
    });
    expect(outcomes.map(({ difference }) => difference)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('its approval is asked for as it says', () => {
    const decision = policiesOf(yamlOf('Approvals')).decide(check('acme/pay/a1', 'refund'));
    expect(decision).toMatchObject({
      kind: 'require_approval',
      approval: {
        min: 2,
        expiresMs: 3_600_000,
        validMs: undefined,
        approvers: ['role:admin', 'account:ops@acme.example', 'key:night-shift'],
      },
    });
  });

  test('its obligations make of the arguments what it shows', () => {
    const decision = policiesOf(yamlOf('Obligations')).decide(check('acme/desk/a1', 'tool.call', 'customer_list'));
    const [sent, passed] = blockOf('Obligations', 'json')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(enforceOnArguments(sent, decision.obligations ?? [])).toEqual({ ok: true, value: passed });
    expect(decision.obligations?.map(({ type }) => type)).toEqual(['redact', 'cap', 'set', 'notify']);
  });

  test('its budget is read, with the caps it names', () => {
    const { budget } = yamlOf('Budgets');
    expect(parsePolicyDocument(yamlOf('Budgets'), 'caps').problems).toEqual([]);
    expect(parseBudgetConfig(budget)).toMatchObject({
      ok: true,
      value: {
        timezone: 'Europe/Berlin',
        limitsMicroUsd: {
          global: { daily: 500_000_000, monthly: 10_000_000_000 },
          org: { daily: 100_000_000 },
          agent: { daily: 5_000_000 },
        },
      },
    });
  });
});
