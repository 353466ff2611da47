/** Audit records of requests that are refused before the gateway is asked: with a gateway that a test plays. */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Refusals } from '../../src/mcp/refusals.ts';

const CALL = { action: 'mcp.call', resource: 'bank/pay' };

describe('refused requests', () => {
  /** `settle` answers those that wait. */
  function play() {
    let nowMs = 0;
    const recorded: string[] = [];
    const logged: string[] = [];
    const waiting: ((problem?: string) => void)[] = [];
    const refusals = new Refusals({
      record: ({ resource }, reason) => {
        recorded.push(`${resource}: ${reason}`);
        return new Promise((resolve) => waiting.push(resolve));
      },
      log: (line) => void logged.push(line),
      now: () => nowMs,
    });
    const settle = async (count: number, problem?: string): Promise<void> => {
      await expect.poll(() => waiting.length, { interval: 2 }).toBe(count);
      for (const answer of waiting.splice(0)) answer(problem);
      await turn();
    };
    const pass = (ms: number): void => {
      nowMs += ms;
    };
    return { refusals, recorded, logged, settle, pass };
  }

  test('are recorded four at once; of a flood the rest is counted, also at the end', async () => {
    const { refusals, recorded, settle } = play();
    for (let n = 0; n < 100; n += 1) refusals.report(CALL, `no ${n}`);
    await settle(4);
    expect(recorded).toEqual([0, 1, 2, 3].map((n) => `bank/pay: no ${n}`));
    refusals.report(CALL, 'later');
    refusals.report(CALL, 'last');
    const closed = refusals.closeWithin(60_000);
    await settle(2);
    expect(recorded.slice(4)).toEqual([
      'bank/pay: later (and others before it that are not on record: 96)',
      'bank/pay: last',
    ]);
    await closed;
  });

  test('are recorded at the pace of one a second where they come one after the other', async () => {
    const { refusals, recorded, settle, pass } = play();
    for (let n = 0; n < 20; n += 1) {
      refusals.report(CALL, `no ${n}`);
      await settle(1);
    }
    for (let n = 20; n < 30; n += 1) refusals.report(CALL, `no ${n}`);
    expect(recorded).toHaveLength(20);
    pass(1_000);
    for (const reason of ['one', 'two', 'three']) refusals.report(CALL, reason);
    await settle(1);
    const closed = refusals.closeWithin(60_000);
    await settle(1);
    await closed;
    expect(recorded.slice(20)).toEqual([
      'bank/pay: one (and others before it that are not on record: 10)',
      'bank/pay: three (and others before it that are not on record: 1)',
    ]);
  });

  test('are reported as unrecorded if a gateway does not take them, and hold nothing up', async () => {
    const { refusals, recorded, logged, settle } = play();
    refusals.report({ ...CALL, resource: 'x'.repeat(100_000) }, 'too long');
    await settle(1, 'no such path');
    expect(recorded[0]?.length).toBeLessThan(20_000);
    expect(logged).toEqual(['a refused mcp.call is not on record at the gateway: no such path']);
    refusals.report(CALL, 'no answer');
    await refusals.closeWithin(10);
  });
});
