import { describe, expect, test } from 'vitest';
import type { Measured } from '../../src/load/open-loop.ts';
import { verdictOf } from '../../src/load/verdict.ts';

const measured = (over: {
  readonly unsent?: number;
  readonly errors?: number;
  readonly answered?: number;
  readonly busy?: number;
  readonly lateP99Ms?: number;
}): Measured => ({
  due: 10_000,
  sent: 10_000,
  answered: over.answered ?? 10_000,
  decisions: { allow: 10_000, deny: 0, pending: 0 },
  errors: over.errors ?? 0,
  reasons: [
    { kind: 'deny', reason: 'no rule', count: 50 },
    { kind: 'error', reason: '503 too busy', count: 12 },
  ],
  waits: { p50: 1, p90: 3, p99: 7.314, p999: 9, p9999: 12, longest: 20, mean: 1.4 },
  curve: [],
  seconds: [],
  durationSecs: 10,
  perSecond: 1_000,
  unsent: over.unsent ?? 0,
  client: { busy: over.busy ?? 0.2, lateP99Ms: over.lateP99Ms ?? 0.2 },
});
const asked = { rate: 1_000, connections: 64, goals: { p99Ms: undefined, errors: undefined } };

describe('the verdict on a load', () => {
  test('a load that was sent as asked, without goals, misses nothing', () => {
    expect(verdictOf(measured({ unsent: 100, errors: 5 }), asked)).toEqual({
      limit: undefined,
      missed: [],
      isClientLate: false,
    });
  });

  test('the gateway was the limit where the connections waited for it', () => {
    expect(verdictOf(measured({ unsent: 1_234 }), asked)).toEqual({
      limit: 'gateway',
      missed: [
        'the rate was not reached: 1,234 of 10,000 checks were not sent by the end, because all 64 connections waited for the gateway',
      ],
      isClientLate: false,
    });
  });

  test.each([
    { busy: 0.98, lateP99Ms: 3, said: 'busy 98 %, 3.00 ms late', isClientLate: false },
    { busy: 0.2, lateP99Ms: 400, said: 'busy 20 %, 400 ms late', isClientLate: true },
  ])('the client was the limit where it was $said', ({ said, isClientLate, ...client }) => {
    expect(verdictOf(measured({ unsent: 1_234, ...client }), asked)).toEqual({
      limit: 'client',
      missed: [
        `the rate was not reached: 1,234 of 10,000 checks were not sent by the end; this client, not the gateway, was the limit (${said})`,
      ],
      isClientLate,
    });
  });

  test('goals are kept up to their very figure, and each that is missed is named', () => {
    expect(verdictOf(measured({ errors: 12 }), { ...asked, goals: { p99Ms: 7.314, errors: 12 } }).missed).toEqual([]);
    expect(verdictOf(measured({ errors: 12 }), { ...asked, goals: { p99Ms: 5, errors: 11 } }).missed).toEqual([
      'p99 was 7.31 ms, more than the 5 ms of --p99',
      '12 checks failed, more than the 11 of --errors; most: 503 too busy',
    ]);
    expect(verdictOf(measured({ answered: 0 }), { ...asked, goals: { p99Ms: 50, errors: undefined } }).missed).toEqual([
      'no check was answered, so that --p99 50ms is not met',
    ]);
  });
});
