/**
 * The schemas that editors use accept what the parsers accept, and refuse what they refuse, as far as they can know.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePolicyCases } from '../../../src/core/policy/cases.ts';
import { parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { checkTogether } from '../../../src/core/policy/policy.ts';
import { POLICY_SCHEMA, POLICY_TEST_SCHEMA } from '../../../src/core/policy/schema.ts';
import { readYaml } from '../../../src/policy-files/policy-yaml.ts';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';
import { conforms } from '../../support/json-schema.ts';
import { runs } from '../../support/runs.ts';

const isPolicy = (raw: unknown): boolean => {
  const { document, problems } = parsePolicyDocument(raw, 'p.yaml');
  return document !== undefined && problems.length === 0 && checkTogether([document]).length === 0;
};
const isCases = (raw: unknown): boolean => parsePolicyCases(raw).ok;

const RULE = { id: 'r', effect: 'allow' };
const policy = (change: object): object => ({ name: 'p', scope: 'global', rules: [RULE], ...change });
const rule = (change: object): object => policy({ rules: [{ ...RULE, ...change }] });
const budget = (section: unknown): object => policy({ budget: section });
const without = (value: object, key: string): object =>
  Object.fromEntries(Object.entries(value).filter(([each]) => each !== key));

const REDACT = { id: 'hide', type: 'redact', paths: ['customer.email', 'result.rows.email'] };
const SET = { id: 'dry', type: 'set', path: 'dry_run', value: true };
const CAP = { id: 'little', type: 'cap', path: 'amount', max: 100 };
const NOTIFY = { id: 'look', type: 'notify', message: 'a refund' };
const obliging = (...obligations: unknown[]): object => rule({ obligations });

const CASE = { agent: 'acme/search/a1', action: 'tool.call', resource: 'web_search', expect: 'allow' };
const cases = (change: object): object => ({ cases: [{ ...CASE, ...change }] });

const halted = (halts: unknown): object => ({ cases: [{ ...CASE, expect: 'deny' }], halts });
const HALT_SCOPES = ['global', 'org:acme', 'team:acme/search', 'agent:acme/search/a1', 'lineage:acme/search/a1'];

describe('policy schema', () => {
  test.each<[string, unknown]>([
    ['rules only', policy({})],
    ['no rules in the list', policy({ rules: [] })],
    ['a budget only', without(budget({ daily_limit_usd: 1 }), 'rules')],
    ['an empty budget', budget({})],
    ['a budget of an org', policy({ scope: 'org:acme', budget: { daily_limit_usd: 1, agent_daily_limit_usd: 1 } })],
    ['every key of a rule', rule({ actions: ['*'], resources: ['a?'], when: 'true', reason: 'because' })],
    ['obligations of every type', obliging(REDACT, SET, CAP, NOTIFY)],
    ['a set to null', obliging({ ...SET, value: null })],
    ['a set to a nested value', obliging({ ...SET, value: { a: [1, 'x', false] } })],
    ['an org', policy({ scope: 'org:acme' })],
    ['a team', policy({ scope: 'team:acme/search' })],
    ['an agent', policy({ scope: 'agent:acme/search/a:1' })],
    ['dots within names', policy({ scope: 'team:.../..a' })],
    ['a name of 128 characters', policy({ name: 'n'.repeat(128) })],
    ['spaces within a name', policy({ name: 'two words' })],
    ['the largest cap', budget({ org_monthly_limit_usd: 1_000_000_000, timezone: 'UTC', action_on_exceed: 'deny' })],
  ])('and parser accept %s', (_, raw) => {
    expect({ parser: isPolicy(raw), schema: conforms(raw, POLICY_SCHEMA) }).toEqual({ parser: true, schema: true });
  });

  test.each<[string, unknown]>([
    ['a list', []],
    ['nothing', null],
    ['an unknown key', policy({ rule: [] })],
    ['no name', without(policy({}), 'name')],
    ['no scope', without(policy({}), 'scope')],
    ['neither rules nor budget', without(policy({}), 'rules')],
    ['an empty name', policy({ name: '' })],
    ['a name with a space at its end', policy({ name: 'p ' })],
    ['a name with a control character', policy({ name: 'a\u001bb' })],
    ['a name of 129 characters', policy({ name: 'n'.repeat(129) })],
    ['a number as a name', policy({ name: 7 })],
    ['a scope without an id', policy({ scope: 'org:' })],
    ['a scope of an unknown tier', policy({ scope: 'user:ada' })],
    ['a team without its org', policy({ scope: 'team:search' })],
    ['the org -', policy({ scope: 'team:-/search' })],
    ['a step in a path', policy({ scope: 'agent:acme/../a1' })],
    ['a space in a scope', policy({ scope: 'org:acme inc' })],
    ['rules as a mapping', policy({ rules: {} })],
    ['a rule as text', policy({ rules: ['allow'] })],
    ['a rule without an id', policy({ rules: [{ effect: 'allow' }] })],
    ['a rule without an effect', policy({ rules: [{ id: 'r' }] })],
    ['an unknown effect', rule({ effect: 'permit' })],
    ['an unknown key of a rule', rule({ action: ['*'] })],
    ['actions as text', rule({ actions: '*' })],
    ['no actions in the list', rule({ actions: [] })],
    ['an empty pattern', rule({ resources: [''] })],
    ['a pattern of 513 characters', rule({ resources: ['a'.repeat(513)] })],
    ['an empty condition', rule({ when: ' ' })],
    ['a condition that is true', rule({ when: true })],
    ['a condition of 4,097 characters', rule({ when: `true || "${'a'.repeat(4087)}" == ""` })],
    ['an empty reason', rule({ reason: '' })],
    ['a reason of 513 characters', rule({ reason: 'a'.repeat(513) })],
    ['no obligations in the list', obliging()],
    ['33 obligations', obliging(...Array.from({ length: 33 }, (_, n) => ({ ...NOTIFY, id: `n${n}` })))],
    ['obligations of a deny', rule({ effect: 'deny', obligations: [NOTIFY] })],
    ['obligations of a requirement', rule({ effect: 'require_approval', obligations: [NOTIFY] })],
    ['an obligation as text', obliging('redact')],
    ['an obligation without an id', obliging(without(NOTIFY, 'id'))],
    ['an obligation without a type', obliging(without(NOTIFY, 'type'))],
    ['an obligation of an unknown type', obliging({ ...NOTIFY, type: 'watermark' })],
    ['an obligation with an unknown key', obliging({ ...NOTIFY, path: 'a' })],
    ['an id with a space', obliging({ ...NOTIFY, id: 'a b' })],
    ['a redaction of nothing', obliging({ ...REDACT, paths: [] })],
    ['a redaction of 65 paths', obliging({ ...REDACT, paths: Array.from({ length: 65 }, (_, n) => `p${n}`) })],
    ['an empty path', obliging({ ...CAP, path: '' })],
    ['an empty name in a path', obliging({ ...CAP, path: 'a..b' })],
    ['a path of 257 characters', obliging({ ...CAP, path: 'a'.repeat(257) })],
    ['a set without a value', obliging(without(SET, 'value'))],
    ['a cap as text', obliging({ ...CAP, max: '5' })],
    ['an empty message', obliging({ ...NOTIFY, message: ' ' })],
    ['a message of 513 characters', obliging({ ...NOTIFY, message: 'm'.repeat(513) })],
    ['a cap of teams in a team', policy({ scope: 'team:acme/search', budget: { team_daily_limit_usd: 1 } })],
    ['a time zone of an org', policy({ scope: 'org:acme', budget: { timezone: 'UTC' } })],
    ['a budget as a number', budget(5)],
    ['an empty section', budget(null)],
    ['an unknown cap', budget({ yearly_limit_usd: 1 })],
    ['a negative cap', budget({ daily_limit_usd: -1 })],
    ['a cap as text', budget({ daily_limit_usd: '5' })],
    ['a cap above the largest', budget({ daily_limit_usd: 1_000_000_001 })],
    ['an offset as a time zone', budget({ timezone: '+05:30' })],
    ['another action', budget({ action_on_exceed: 'warn' })],
  ])('and parser refuse %s', (_, raw) => {
    expect({ parser: isPolicy(raw), schema: conforms(raw, POLICY_SCHEMA) }).toEqual({ parser: false, schema: false });
  });

  test.each<[string, unknown]>([
    ['CEL', rule({ when: 'agnet.org_id == "acme"' })],
    ['which ids are taken', policy({ rules: [RULE, RULE] })],
    ['which ids of obligations are taken', obliging(NOTIFY, NOTIFY)],
    ['how long a value is', obliging({ ...SET, value: 'v'.repeat(5000) })],
    ['time zones', budget({ timezone: 'Europe/Atlantis' })],
    ['bytes', policy({ scope: `org:${'é'.repeat(200)}` })],
  ])('leaves %s to the parser', (_, raw) => {
    expect({ parser: isPolicy(raw), schema: conforms(raw, POLICY_SCHEMA) }).toEqual({ parser: false, schema: true });
  });

  test('decides as the parser on any mixture of values', () => {
    const value = fc.constantFrom<unknown>(
      undefined,
      null,
      '',
      ' ',
      'a',
      'global',
      'org:b',
      0,
      -1,
      [],
      ['a'],
      {},
      true,
    );
    /** Usual values, most of the time: mixtures are mostly nearly valid. */
    const mostly = (usual: unknown) => fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, value);
    const anyRule = fc.record({
      id: mostly('r'),
      actions: mostly(['*']),
      resources: mostly(undefined),
      effect: mostly('deny'),
      reason: mostly(undefined),
    });
    const documents = fc
      .record({
        name: mostly('p'),
        scope: mostly('global'),
        rules: fc.oneof(fc.array(anyRule, { maxLength: 1 }), mostly([RULE])),
        budget: fc.oneof(
          mostly(undefined),
          fc.record({ daily_limit_usd: mostly(1), action_on_exceed: mostly('deny') }),
        ),
      })
      // As from a file: there, nothing is undefined.
      .map((document) => JSON.parse(JSON.stringify(document)));
    fc.assert(
      fc.property(documents, (raw) => isPolicy(raw) === conforms(raw, POLICY_SCHEMA)),
      { numRuns: runs(500) },
    );
  });
});

describe('policy test schema', () => {
  test.each<[string, unknown]>([
    ['a case', cases({})],
    ['no cases in the list', { cases: [] }],
    [
      'every key',
      cases({ name: 'n', attributes: { a: [1] }, caller: '/t/a', estimated_cost_usd: 0.5, expect: 'deny', rule: 'r' }),
    ],
    ['an agent without an org', cases({ agent: '/search/a1' })],
    ['no resource', cases({ resource: '' })],
    ['the largest cost', cases({ estimated_cost_usd: 1_000_000 })],
    ['a cause', cases({ expect: 'deny', cause: 'halt' })],
    ['no halts in the list', halted([])],
    ['halts of every scope', halted(HALT_SCOPES.map((scope) => ({ scope })))],
    ['every key of a halt', halted([{ scope: 'org:acme', actions: ['tool.*'], reason: 'leak' }])],
  ])('and parser accept %s', (_, raw) => {
    expect({ parser: isCases(raw), schema: conforms(raw, POLICY_TEST_SCHEMA) }).toEqual({ parser: true, schema: true });
  });

  test.each<[string, unknown]>([
    ['a list', [CASE]],
    ['no cases', {}],
    ['another key beside cases', { cases: [], policies: [] }],
    ['a case as text', { cases: ['allow'] }],
    ['a case without an agent', { cases: [without(CASE, 'agent')] }],
    ['a case without an action', { cases: [without(CASE, 'action')] }],
    ['a case without a resource', { cases: [without(CASE, 'resource')] }],
    ['a case without a decision', { cases: [without(CASE, 'expect')] }],
    ['an unknown key', cases({ expected: 'allow' })],
    ['an empty action', cases({ action: '' })],
    ['an agent of two parts', cases({ agent: 'search/a1' })],
    ['an agent of the org -', cases({ agent: '-/search/a1' })],
    ['an agent of four parts', cases({ caller: 'a/b/c/d' })],
    ['attributes as a list', cases({ attributes: [] })],
    ['a negative cost', cases({ estimated_cost_usd: -0.1 })],
    ['a cost above the largest', cases({ estimated_cost_usd: 1_000_001 })],
    ['an unknown decision', cases({ expect: 'pending' })],
    ['an empty rule', cases({ rule: '' })],
    ['an empty name', cases({ name: '' })],
    ['a cause of an allow', cases({ cause: 'halt' })],
    ['a cause that takes a gateway', cases({ expect: 'deny', cause: 'budget' })],
    ['halts as a mapping', halted({ scope: 'org:acme' })],
    ['a halt as text', halted(['org:acme'])],
    ['a halt without a scope', halted([{}])],
    ['a halt of an unknown scope', halted([{ scope: 'lineage:acme/search' }])],
    ['a halt of no actions', halted([{ scope: 'global', actions: [] }])],
    ['a halt without a reason', halted([{ scope: 'global', reason: ' ' }])],
    ['an unknown key of a halt', halted([{ scope: 'global', mode: 'pause' }])],
  ])('and parser refuse %s', (_, raw) => {
    expect({ parser: isCases(raw), schema: conforms(raw, POLICY_TEST_SCHEMA) }).toEqual({
      parser: false,
      schema: false,
    });
  });
});

describe('schema files', () => {
  const EXAMPLES = join(PACKAGE_ROOT, 'examples', 'policies');
  const schemaFile = (name: string): unknown =>
    JSON.parse(readFileSync(join(PACKAGE_ROOT, 'schemas', name), 'utf8')) as unknown;

  test('are those of the code', () => {
    expect(schemaFile('policy.schema.json'), 'run `npm run docs`').toEqual(POLICY_SCHEMA);
    expect(schemaFile('policy-test.schema.json'), 'run `npm run docs`').toEqual(POLICY_TEST_SCHEMA);
  });

  test.each(readdirSync(EXAMPLES))('hold for the example %s, each document of which names its schema', (name) => {
    const schema = name.endsWith('.test.yaml') ? 'policy-test.schema.json' : 'policy.schema.json';
    const text = readFileSync(join(EXAMPLES, name), 'utf8');
    const { documents } = readYaml(text);
    expect(documents.map(({ raw }) => conforms(raw, schemaFile(schema) as object))).toEqual(documents.map(() => true));
    const named = text.match(/^# yaml-language-server: \$schema=\.\.\/\.\.\/schemas\/(.+)$/gm) ?? [];
    expect(named.map((line) => line.slice(line.lastIndexOf('/') + 1))).toEqual(documents.map(() => schema));
  });
});
