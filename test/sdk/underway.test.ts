import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Underway } from '../../sdk/typescript/src/waiters.ts';

describe('underway', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('close waits for what is in flight, within its limit, and keeps no process alive', async () => {
    const underway = new Underway();
    await underway.idleWithin(600_000);
    const ends: (() => void)[] = [];
    const work = [1, 2].map(() =>
      underway.during(
        () =>
          new Promise<void>((resolve) => {
            ends.push(resolve);
          }),
      ),
    );
    const events: string[] = [];
    const impatient = underway.idleWithin(1_000).then(() => events.push('the time is over'));
    const patient = underway.idleWithin(600_000).then(() => events.push('all is done'));
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(999);
    expect(events).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(events).toEqual(['the time is over']);
    ends[1]?.();
    await Promise.all([...work, impatient, patient]);
    expect(events).toEqual(['the time is over', 'all is done']);
    expect(vi.getTimerCount()).toBe(0);
    await underway.idleWithin(600_000);
  });

  test("a failure ends the wait, and its error is the caller's", async () => {
    const underway = new Underway();
    await expect(
      underway.during(async () => {
        throw new RangeError('it failed');
      }),
    ).rejects.toThrow(new RangeError('it failed'));
    await underway.idleWithin(600_000);
  });
});
