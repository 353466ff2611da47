import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConditionVariables, compileCondition } from '../../../src/core/condition/condition.ts';
import { FUNCTION_NAMES } from '../../../src/core/condition/functions.ts';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';

const page = readFileSync(join(PACKAGE_ROOT, 'docs/conditions.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, inside]) => inside ?? '');

const identity = (written: string) => {
  const [orgId = '', teamId = '', agentId = ''] = written.split('/');
  return { orgId, teamId, agentId };
};
const check = JSON.parse(blocks('json')[0] ?? '');
const subject = {
  agent: identity(check.agent),
  action: check.action,
  resource: check.resource,
  attributes: check.attributes,
  caller: identity(check.caller),
  estimatedCostMicroUsd: check.estimated_cost_usd * 1_000_000,
};

const examples = blocks('cel')
  .flatMap((block) => block.split('\n'))
  .filter((line) => line !== '')
  .map((line) => line.split(/\s+\/\/ /) as [string, string]);

describe('the page about conditions', () => {
  test.each(examples)('says what %s comes to', (source, expected) => {
    const compiled = compileCondition(source);
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
    const outcome = compiled.value.evaluate(new ConditionVariables().fill(subject));
    expect(typeof outcome === 'object' ? `error: ${outcome.error}` : String(outcome)).toBe(expected);
  });

  test('has an example of each group, and names every function', () => {
    expect(examples.length).toBeGreaterThan(30);
    expect([...FUNCTION_NAMES].filter((name) => !page.includes(`${name}(`))).toEqual([]);
  });
});
