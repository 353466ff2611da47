/** The memory and the time that bodies in pieces may take. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import { GatheredBody } from '../../../src/doors/engine/exchange.ts';

const KIB = 1024;
const LIMITS = { maxBytes: 1024 * KIB, timeoutMs: 30_000 };
const piece = (bytes: number): Uint8Array => new Uint8Array(bytes);
const unexpected = (): void => {
  throw new Error('it is not late');
};

describe('gathered body', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('incomplete bodies share a limit, and a finished one returns all its room', () => {
    const door = new DoorState(64 * KIB);
    const one = new GatheredBody(door, LIMITS, unexpected);
    const other = new GatheredBody(door, LIMITS, unexpected);
    expect([one.add(piece(10 * KIB)), one.add(piece(10 * KIB)), other.add(piece(1))]).toEqual([true, true, true]);
    expect(one.add(piece(20 * KIB))).toBe(false); // room for 64 KiB in place of 32, beside the 16 of the other
    one.letGo();
    expect([other.add(piece(20 * KIB)), other.add(piece(30 * KIB))]).toEqual([true, true]);
    other.letGo();
    other.letGo(); // as when its client goes while it is answered
    expect({ tooMany: door.takeBodyBytes(64 * KIB + 1), fitting: door.takeBodyBytes(64 * KIB) }).toEqual({
      tooMany: false,
      fitting: true,
    });
  });

  test('a body takes at most the memory of the largest allowed, and may be as large', () => {
    const door = new DoorState(40 * KIB);
    const body = new GatheredBody(door, { ...LIMITS, maxBytes: 40 * KIB }, unexpected);
    expect([body.add(piece(30 * KIB)), body.add(piece(10 * KIB)), body.size, body.bytes.length]).toEqual([
      true,
      true,
      40 * KIB,
      40 * KIB,
    ]);
    body.letGo();
  });

  test('a body not finished in time is late, however many chunks come', () => {
    const door = new DoorState(64 * KIB);
    const late: string[] = [];
    const dripping = new GatheredBody(door, LIMITS, () => late.push('dripping'));
    const whole = new GatheredBody(door, LIMITS, () => late.push('whole'));
    for (let seconds = 0; seconds < 29; seconds += 1) {
      dripping.add(piece(1));
      vi.advanceTimersByTime(1_000);
    }
    whole.letGo();
    vi.advanceTimersByTime(999);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual(['dripping']);
    dripping.letGo();
  });

  test('a shutdown waits for a body in progress, and not for one stalled for two seconds', () => {
    const door = new DoorState(64 * KIB);
    const body = new GatheredBody(door, LIMITS, unexpected);
    expect(door.isBusy).toBe(false);
    for (let pieces = 0; pieces < 3; pieces += 1) {
      body.add(piece(1));
      vi.advanceTimersByTime(1_999);
      expect(door.isBusy).toBe(true);
    }
    vi.advanceTimersByTime(1);
    expect(door.isBusy).toBe(false);
    body.add(piece(1));
    body.letGo();
    expect(door.isBusy).toBe(false);
  });
});
