import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runPolicyCases } from '../../src/core/policy/cases.ts';
import { loadPolicies, loadPolicyCases, renderPolicyProblem } from '../../src/policy-files/policy-file.ts';

const FOLDER = fileURLToPath(new URL('../../examples/policies/', import.meta.url));

describe('policy examples', () => {
  test('the examples are the starter policy and three realistic ones, with cases', () => {
    expect(readdirSync(FOLDER).sort()).toEqual([
      'coding-agent.test.yaml',
      'coding-agent.yaml',
      'research-fleet.test.yaml',
      'research-fleet.yaml',
      'starter.test.yaml',
      'starter.yaml',
      'support-agent.test.yaml',
      'support-agent.yaml',
    ]);
  });

  test.each([
    ['starter', 12],
    ['coding-agent', 13],
    ['support-agent', 13],
    ['research-fleet', 13],
  ])('every case of the example %s holds', async (name, count) => {
    const policies = await loadPolicies(`${FOLDER}${name}.yaml`);
    if (!policies.ok) throw new Error(policies.fault.map(renderPolicyProblem).join('\n'));
    expect(policies.value.warnings).toEqual([]);
    const cases = await loadPolicyCases(`${FOLDER}${name}.test.yaml`);
    if (!cases.ok) throw new Error(cases.fault.map(renderPolicyProblem).join('\n'));
    expect(cases.value.length).toBe(count);
    expect(
      runPolicyCases(policies.value.policies, cases.value).flatMap(({ name: of, difference }) =>
        difference === undefined ? [] : [`${of}: ${difference}`],
      ),
    ).toEqual([]);
  });

  test('all examples load together as one folder, without their cases', async () => {
    const loaded = await loadPolicies(FOLDER);
    if (!loaded.ok) throw new Error(loaded.fault.map(renderPolicyProblem).join('\n'));
    expect(
      loaded.value.policies.summary().documents.map(({ name, scope, source }) => `${source}: ${name} (${scope})`),
    ).toEqual([
      'starter.yaml: starter (global)',
      'support-agent.yaml: spending (global)',
      'research-fleet.yaml: fleet (org:lab)',
      'support-agent.yaml: support (org:acme)',
      'coding-agent.yaml: coding-agents (team:acme/coding)',
      'research-fleet.yaml: gatherers (team:lab/gather)',
      'research-fleet.yaml: writers (team:lab/write)',
      'support-agent.yaml: support-desk (team:acme/support)',
      'coding-agent.yaml: reviewer (agent:acme/coding/reviewer)',
      'research-fleet.yaml: publisher (agent:lab/write/publisher)',
    ]);
    expect(loaded.value.policies.budget?.limitsMicroUsd.org).toEqual({ daily: 100_000_000, monthly: 2_000_000_000 });
  });
});
