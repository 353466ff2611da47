import { describe, expect, test } from 'vitest';
import { BusyTime } from '../../src/threads/supervisor.ts';

describe('busy time', () => {
  test('the busy time of a thread continues over its replacement, as counters must', () => {
    const thread = () => {
      const state = { active: 0 };
      return {
        state,
        performance: { eventLoopUtilization: () => ({ idle: 0, utilization: 0, active: state.active }) },
      };
    };
    const [first, second, other] = [thread(), thread(), thread()];
    const busy = new BusyTime();
    first.state.active = 500;
    expect(busy.readMs('io-0', first)).toBe(500);
    first.state.active = 800;
    expect(busy.readMs('io-0', first)).toBe(800);
    first.state.active = 0; // as of a thread that has ended
    expect(busy.readMs('io-0', first)).toBe(800);
    expect(busy.readMs('io-0', second)).toBe(800);
    second.state.active = 100;
    expect(busy.readMs('io-0', second)).toBe(900);
    expect(busy.readMs('io-0', thread())).toBe(900);
    expect(busy.readMs('io-1', other)).toBe(0);
  });
});
