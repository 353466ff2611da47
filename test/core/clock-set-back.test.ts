/** The clock is set back by more than a day: nothing waits until it is there again. */
import { describe, expect, test } from 'vitest';
import { type Approval, setBackTo } from '../../src/core/approvals/approval.ts';
import { Stats } from '../../src/core/stats/stats.ts';
import { RateLimiter } from '../../src/fairness/rate-limit.ts';
import { CRAWLER, checkOf, controlOf, openGovernor, opId } from '../support/governor.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-11-04T12:00:00Z');
const WRONG = NOW + 26 * HOUR_MS;

const APPROVAL = {
  id: 'a-1',
  state: 'pending',
  requestedAtMs: WRONG,
  changedAtMs: WRONG,
  expiresAtMs: WRONG + HOUR_MS,
  frozenAtMs: undefined,
  decisions: [],
} as unknown as Approval;

describe('a clock set back by 26 hours', () => {
  test('an operation goes on, and is swept when it has ended long enough ago', () => {
    const governor = openGovernor({ sweepTtlMs: 60_000 });
    governor.apply<'check'>(checkOf(CRAWLER, 't:running'), WRONG);
    governor.apply<'check'>(checkOf(CRAWLER, 't:ended'), WRONG);
    governor.apply<'control-op'>(controlOf('t:ended', 'terminate'), WRONG);
    governor.setBack(NOW);
    expect(governor.apply<'control-op'>(controlOf('t:running', 'pause'), NOW + 1).reply).toMatchObject({
      value: { state: 'paused', registeredAtMs: NOW, updatedAtMs: NOW + 1 },
    });
    governor.sweep(NOW + 59_999);
    expect(governor.ops.find(opId('t:ended'), 'acme')).toBeDefined();
    governor.sweep(NOW + 60_000);
    expect(governor.ops.find(opId('t:ended'), 'acme')).toBeUndefined();
  });

  test('an approval has what was left of its time, and one from before is as it was', () => {
    expect(setBackTo(APPROVAL, NOW)).toMatchObject({
      requestedAtMs: NOW,
      changedAtMs: NOW,
      expiresAtMs: NOW + HOUR_MS,
    });
    const before = { ...APPROVAL, requestedAtMs: NOW - 1, changedAtMs: NOW - 1, expiresAtMs: NOW + HOUR_MS };
    expect(setBackTo(before, NOW)).toBe(before);
    expect(setBackTo({ ...before, frozenAtMs: WRONG }, NOW)).toMatchObject({
      frozenAtMs: NOW,
      expiresAtMs: NOW + HOUR_MS - 26 * HOUR_MS,
    });
  });

  test('an approval that is asked for again is found by its digest', () => {
    const governor = openGovernor();
    const asked = { ...APPROVAL, digest: 'd', agent: CRAWLER, opIds: [], usedBy: [], terms: {} } as unknown as Approval;
    governor.restoreApproval({ ...asked, state: 'denied' });
    governor.setBack(NOW);
    governor.restoreApproval({ ...asked, id: 'a-2', requestedAtMs: NOW + 1, expiresAtMs: NOW + HOUR_MS });
    expect(governor.approvals.openFor('d', NOW + 2)?.id).toBe('a-2');
  });

  test('statistics go on at the time that is shown', () => {
    const stats = new Stats(NOW, [1, 10]);
    const allow = { decision: 'allow', cause: undefined, policy: 'p', ruleId: 'ok' } as const;
    stats.countCheck(CRAWLER, allow, WRONG);
    stats.setBack(NOW + 60_000);
    stats.countCheck(CRAWLER, allow, NOW + 60_001);
    expect(stats.view(undefined, NOW + 120_000)).toMatchObject({
      sum: { allow: 1 },
      points: [{ atMs: NOW + 60_000, allow: 1 }],
    });
  });

  test('a rate limit refuses nobody for it', () => {
    const limiter = new RateLimiter(60);
    expect(limiter.take('busy', WRONG).ok).toBe(true);
    expect(limiter.take('busy', NOW).ok).toBe(true);
  });
});
