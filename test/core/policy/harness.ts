/** Policies from plain values, and a check on them. */
import { expect } from 'vitest';
import type { CheckSubject } from '../../../src/core/condition/condition.ts';
import { type PolicyDocument, parsePolicyDocument } from '../../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../../src/core/policy/policy.ts';

export function documentOf(raw: unknown): PolicyDocument {
  const { document, problems } = parsePolicyDocument(raw, 'test.yaml');
  expect(problems).toEqual([]);
  if (document === undefined) throw new Error('no document');
  return document;
}

export function policiesOf(...raw: readonly unknown[]): PolicySet {
  const compiled = compilePolicies(raw.map(documentOf));
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

export const check = (over: Partial<CheckSubject> = {}): CheckSubject => ({
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  caller: undefined,
  estimatedCostMicroUsd: 0,
  ...over,
});

export const webOnly = { id: 'web-only', actions: ['tool.call'], resources: ['web_*'], effect: 'allow' };
