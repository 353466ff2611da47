import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { waitWhileThere } from '../../../src/doors/rpc/departure.ts';

describe('a wait for an approval', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A main thread that answers a wait when it is left. */
  function openLink() {
    const waits = new Map<string, () => void>();
    const link = {
      call: (name: string, { ticket }: { readonly ticket: string }) => {
        if (name === 'leaveWait') return Promise.resolve(ok(waits.get(ticket)?.()));
        return new Promise((resolve) => waits.set(ticket, () => resolve(ok({ state: 'pending' }))));
      },
    };
    return { link: link as never, waits };
  }
  const WAIT = { reader: {} as never, principal: undefined, id: 'a', waitMs: 60_000 };

  test('ends within a second or so after its caller has gone', async () => {
    const { link } = openLink();
    const caller = { cancelled: false };
    const waited = waitWhileThere(link, caller, WAIT);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(vi.getTimerCount()).toBe(1);
    caller.cancelled = true;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await waited).toEqual(ok({ state: 'pending' }));
    expect(vi.getTimerCount()).toBe(0);
  });

  test('ends by its own caller only', async () => {
    const { link, waits } = openLink();
    const gone = waitWhileThere(link, { cancelled: true }, WAIT);
    const there = waitWhileThere(link, { cancelled: false }, WAIT);
    let isAnswered = false;
    void there.then(() => {
      isAnswered = true;
    });
    await vi.advanceTimersByTimeAsync(5_000);
    await gone;
    expect({ isAnswered, waits: waits.size }).toEqual({ isAnswered: false, waits: 2 });
    for (const answer of waits.values()) answer();
    await there;
  });
});
