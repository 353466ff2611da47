import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Reachability } from '../../sdk/typescript/src/reachability.ts';

describe('reachability', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('a gateway is lost after the whole allowed time, from the first failure', () => {
    const reach = new Reachability(1_000);
    reach.failed();
    vi.advanceTimersByTime(900);
    reach.failed();
    expect(reach.isLost).toBe(false);
    vi.advanceTimersByTime(100);
    expect(reach.isLost).toBe(true);
    reach.succeeded();
    vi.advanceTimersByTime(1_000);
    expect(reach.isLost).toBe(false);
  });

  test('a gateway reached in between gets the whole allowed time anew', () => {
    const reach = new Reachability(1_000);
    reach.failed();
    reach.failed();
    vi.advanceTimersByTime(900);
    reach.succeeded();
    reach.failed();
    vi.advanceTimersByTime(900);
    expect(reach.isLost).toBe(false);
    vi.advanceTimersByTime(100);
    expect(reach.isLost).toBe(true);
  });

  test('each return of the gateway is reported once', () => {
    let returns = 0;
    const reach = new Reachability(0);
    reach.on('back', () => {
      returns += 1;
    });
    reach.succeeded();
    expect(returns).toBe(0);
    reach.failed();
    expect(reach.isLost).toBe(true);
    reach.succeeded();
    reach.succeeded();
    expect(returns).toBe(1);
    expect(reach.isLost).toBe(false);
  });

  test('each loss of the gateway is reported once', () => {
    let losses = 0;
    const reach = new Reachability(1_000);
    reach.on('lost', () => {
      losses += 1;
    });
    reach.failed();
    expect(losses).toBe(0);
    vi.advanceTimersByTime(1_000);
    reach.failed();
    expect(losses).toBe(1);
    reach.succeeded();
    reach.failed();
    vi.advanceTimersByTime(1_000);
    expect(losses).toBe(2);
  });
});
