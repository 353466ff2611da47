import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parsePolicyCases, runPolicyCases } from '../../src/core/policy/cases.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { loadPolicies, loadPolicyCases, renderPolicyProblem } from '../../src/policy-files/policy-file.ts';
import { readYaml } from '../../src/policy-files/policy-yaml.ts';

const REFERENCE = fileURLToPath(new URL('../../docs/policies.md', import.meta.url));
const FOLDER = fileURLToPath(new URL('../../examples/policies/', import.meta.url));

describe('policy examples', () => {
  test('the examples are a starter, three with cases, and one for each coding agent', () => {
    expect(readdirSync(FOLDER).sort()).toEqual([
      'claude-code.yaml',
      'codex.yaml',
      'coding-agent.test.yaml',
      'coding-agent.yaml',
      'copilot.yaml',
      'cursor.yaml',
      'gemini.yaml',
      'research-fleet.test.yaml',
      'research-fleet.yaml',
      'starter.test.yaml',
      'starter.yaml',
      'support-agent.test.yaml',
      'support-agent.yaml',
    ]);
  });

  test.each([
    ['starter', 13],
    ['coding-agent', 17],
    ['support-agent', 15],
    ['research-fleet', 15],
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

  test('every document that the reference shows is a valid policy', () => {
    const blocks = [...readFileSync(REFERENCE, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
      ([, text]) => text ?? '',
    );
    const shown = blocks.flatMap((text) => readYaml(text).documents.map(({ raw }) => raw as Record<string, unknown>));
    const documents = shown.filter(({ rules }) => rules !== undefined);
    expect(documents.map(({ name }) => name)).toEqual(['search-team', 'payments', 'support']);
    expect(documents.flatMap((raw) => parsePolicyDocument(raw, 'policies.md').problems)).toEqual([]);
    expect(shown.filter((raw) => 'cases' in raw).map((raw) => parsePolicyCases(raw).ok)).toEqual([true, true]);
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
      'claude-code.yaml: claude-code (team:acme/dev)',
      'codex.yaml: codex (team:acme/dev)',
      'coding-agent.yaml: coding-agents (team:acme/coding)',
      'copilot.yaml: copilot (team:acme/dev)',
      'cursor.yaml: cursor (team:acme/dev)',
      'gemini.yaml: gemini (team:acme/dev)',
      'research-fleet.yaml: gatherers (team:lab/gather)',
      'research-fleet.yaml: writers (team:lab/write)',
      'support-agent.yaml: support-desk (team:acme/support)',
      'coding-agent.yaml: reviewer (agent:acme/coding/reviewer)',
      'research-fleet.yaml: publisher (agent:lab/write/publisher)',
    ]);
    expect(loaded.value.policies.budget?.limitsMicroUsd.org).toEqual({ daily: 100_000_000, monthly: 2_000_000_000 });
  });
});
