import { describe, expect, it } from 'vitest';
import { sameFile } from '../../bench/lib/aside.ts';

describe('linking a benchmark with the sources of another commit', () => {
  const flat = ['core/governor.ts', 'core/policy-document.ts', 'core/audit-line.ts', 'adapters/hash-key.ts'];

  it.each([
    ['core/governor.ts', 'core/governor.ts'],
    ['core/audit/audit-line.ts', 'core/audit-line.ts'],
    ['core/policy/document.ts', 'core/policy-document.ts'],
    ['system/hash-key.ts', 'adapters/hash-key.ts'],
    ['fairness/timed-slices.ts', undefined],
  ])('finds %s as %s', (wanted, found) => {
    expect(sameFile(flat, wanted)).toBe(found);
  });

  it('prefers the same place over the same name elsewhere', () => {
    expect(sameFile(['core/budget.ts', 'core/budget/budget.ts'], 'core/budget/budget.ts')).toBe(
      'core/budget/budget.ts',
    );
  });
});
