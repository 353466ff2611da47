import { describe, expect, test } from 'vitest';
import type { UsageRow } from '../../../src/core/budget/rows.ts';
import { UsageMemory, usageLimitsFor } from '../../../src/core/budget/usage.ts';

const usage = (orgId: string, usageId: string, recordedAtMs = 0): UsageRow => ({
  kind: 'usage',
  orgId,
  teamId: 'team',
  agentId: 'agent',
  usageId,
  recordedAtMs,
  exceeded: null,
});
const known = (memory: UsageMemory, rows: readonly UsageRow[]) =>
  rows.filter((row) => memory.recall(row, 0) !== undefined).map(({ orgId, usageId }) => `${orgId}/${usageId}`);
const series = (orgId: string, count: number) => Array.from({ length: count }, (_, index) => usage(orgId, `u${index}`));

describe('budget usage', () => {
  test('an org over its share drops its own oldest ids first', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 3, total: 100 });
    const rows = [...series('quiet', 1), ...series('busy', 5)];
    for (const row of rows) memory.remember(row);
    expect(known(memory, rows)).toEqual(['quiet/u0', 'busy/u2', 'busy/u3', 'busy/u4']);
  });

  test('when full, an org evicts its own ids, and a new org evicts from the largest', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 100, total: 5 });
    const rows = [...series('busy', 3), ...series('quiet', 2)];
    for (const row of rows) memory.remember(row);
    memory.remember(usage('quiet', 'u9'));
    expect(known(memory, rows)).toEqual(['busy/u0', 'busy/u1', 'busy/u2', 'quiet/u1']);
    memory.remember(usage('new', 'u0'));
    expect(known(memory, [...rows, usage('quiet', 'u9'), usage('new', 'u0')])).toEqual([
      'busy/u1',
      'busy/u2',
      'quiet/u1',
      'quiet/u9',
      'new/u0',
    ]);
    expect(memory.size).toBe(5);
  });

  test('usage ids stay within the memory limit, with at most a sixteenth per org', () => {
    expect(usageLimitsFor(256)).toEqual({ ttlMs: 24 * 3_600_000, perOrg: 4_096, total: 65_536 });
    for (const memoryMib of [1024, 65_536])
      expect(usageLimitsFor(memoryMib)).toEqual({ ttlMs: 24 * 3_600_000, perOrg: 16_384, total: 262_144 });
  });

  test('restores the latest ids that fit and leaves the rest in the store', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 100, total: 8 });
    const rows = Array.from({ length: 30 }, (_, index) => usage(`org-${index % 2}`, `u${index}`, (index * 7) % 30));
    memory.restore(rows, 30);
    expect(
      rows
        .filter((row) => memory.recall(row, 30) !== undefined)
        .map(({ recordedAtMs }) => recordedAtMs)
        .toSorted((a, b) => a - b),
    ).toEqual([22, 23, 24, 25, 26, 27, 28, 29]);
    expect(memory.drainChanges()).toEqual([]);
  });

  test('the store receives each id once, and each dropped id', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 1, total: 10 });
    memory.remember(usage('acme', 'a'));
    expect(memory.drainChanges()).toEqual([{ key: 'usage/acme/team/agent/a', row: usage('acme', 'a') }]);
    memory.remember(usage('acme', 'b'));
    expect(memory.drainChanges()).toEqual([
      { key: 'usage/acme/team/agent/a', row: undefined },
      { key: 'usage/acme/team/agent/b', row: usage('acme', 'b') },
    ]);
    expect(memory.drainChanges()).toEqual([]);
  });

  test('ids expire in bounded steps', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 10, total: 100 });
    for (const row of [...series('acme', 4), ...series('globex', 4), usage('acme', 'late', 500)]) memory.remember(row);
    expect([999, 1000, 1000, 1000].map((nowMs) => memory.sweep(nowMs, 5))).toEqual([0, 5, 3, 0]);
    expect(memory.size).toBe(1);
  });

  test('an id that returns after its expiry is a new id', () => {
    const memory = new UsageMemory({ ttlMs: 1000, perOrg: 3, total: 10 });
    memory.remember(usage('acme', 'a'));
    memory.remember(usage('acme', 'b', 900));
    memory.remember(usage('acme', 'a', 1000));
    expect(memory.size).toBe(2);
    for (const id of ['c', 'd']) memory.remember(usage('acme', id, 1001));
    expect({
      recall: memory.recall(usage('acme', 'b'), 1001),
      recordedAtMs: memory.recall(usage('acme', 'a'), 1001)?.recordedAtMs,
    }).toEqual({ recall: undefined, recordedAtMs: 1000 });
  });
});
