import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConditionVariables, compileCondition } from '../../../src/core/condition/condition.ts';
import { CODE_POINT } from '../../support/code-point.ts';
import { runs } from '../../support/runs.ts';

const WORDS = [
  ...['attributes', 'resource', 'agent', 'caller', 'action', 'estimated_cost_usd', 'x', 'y', 'true', 'null', 'int'],
  ...['attributes.a', 'attributes.b', 'attributes.?c', 'agent.org_id', 'caller.team_id', 'attributes.a[0]', '[]', '{}'],
  ...[
    '0',
    '1',
    '-5',
    '9223372036854775807',
    '2u',
    '1.5',
    '1e300',
    '"a"',
    '"😀"',
    "b'\\xff'",
    '"1h"',
    'r"\\"',
    '((',
    '`',
  ],
  ...['timestamp("2026-01-01T00:00:00Z")', 'duration("-1.5h")', 'optional.none()', '"2026-01-01T00:00:00Z"'],
];
const BINARY = ['+', '-', '*', '/', '%', '==', '!=', '<', '>=', 'in', '&&', '||'];
const METHODS = [
  'size',
  'contains',
  'split',
  'replace',
  'join',
  'trim',
  'getHours',
  'orValue',
  'matches',
  'charAt',
  'no',
];
const FUNCTIONS = [
  'int',
  'uint',
  'double',
  'string',
  'bytes',
  'bool',
  'timestamp',
  'duration',
  'type',
  'size',
  'dyn',
  'has',
];
const LOOPS = ['all', 'exists', 'exists_one', 'filter', 'map', 'transformMap', 'optMap'];

const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom(...WORDS),
    fc.tuple(tie('expression'), fc.constantFrom(...BINARY), tie('expression')).map((parts) => `(${parts.join(' ')})`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...METHODS), fc.array(tie('expression'), { maxLength: 3 }))
      .map(([target, name, args]) => `${target}.${name}(${args.join(', ')})`),
    fc.tuple(fc.constantFrom(...FUNCTIONS), tie('expression')).map(([name, arg]) => `${name}(${arg})`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...LOOPS), fc.constantFrom('x', 'y', 'x, y'), tie('expression'))
      .map(([over, name, names, body]) => `${over}.${name}(${names}, ${body})`),
    fc.array(tie('expression'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc.tuple(tie('expression'), tie('expression')).map(([key, value]) => `{${key}: ${value}}`),
    fc.tuple(tie('expression'), tie('expression')).map(([target, index]) => `${target}[${index}]`),
    fc
      .tuple(tie('expression'), tie('expression'), tie('expression'))
      .map((parts) => `(${parts[0]} ? ${parts[1]} : ${parts[2]})`),
    fc.tuple(fc.constantFrom('!', '-'), tie('expression')).map((parts) => parts.join('')),
  ),
}));

const attributes = fc.record({
  a: fc.oneof(fc.array(fc.jsonValue()), fc.jsonValue()),
  b: fc.jsonValue(),
});

const SUBJECT = {
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web/search',
  caller: undefined,
  estimatedCostMicroUsd: 1,
};

describe('random conditions', () => {
  test('never throw, and say so when they have run out of steps', () => {
    let accepted = 0;
    fc.assert(
      fc.property(expression, attributes, (source, sent) => {
        const compiled = compileCondition(`dyn(${source}) == 1`);
        if (!compiled.ok) {
          expect(compiled.fault.length).toBeGreaterThan(0);
          return;
        }
        accepted += 1;
        const variables = new ConditionVariables().fill({ ...SUBJECT, attributes: sent as Record<string, unknown> });
        const outcome = compiled.value.evaluate(variables);
        if (typeof outcome === 'object') expect(outcome.error).not.toBe('');
        if (variables.left < 0) expect(outcome).toMatchObject({ error: expect.stringContaining('1000000 steps') });
      }),
      { numRuns: runs(800) },
    );
    expect(accepted).toBeGreaterThan(25);
  });

  test('stay within the steps of a check, whatever is sent', () => {
    const list = Array.from({ length: 2_000 }, (_, index) => `v${index}`);
    fc.assert(
      fc.property(expression, (body) => {
        const compiled = compileCondition(`attributes.a.all(x, attributes.a.all(y, ${body} == 1 || true))`);
        if (!compiled.ok) return;
        const variables = new ConditionVariables().fill({ ...SUBJECT, attributes: { a: list, b: list } });
        expect(compiled.value.evaluate(variables)).toMatchObject({ error: expect.stringContaining('1000000 steps') });
        expect(variables.left).toBeGreaterThan(-1_000_000);
      }),
      { numRuns: runs(30) },
    );
  });

  test('any text is refused or compiled, and never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: CODE_POINT, maxLength: 60 }), (source) => {
        expect(typeof compileCondition(source).ok).toBe('boolean');
      }),
    );
  });
});
