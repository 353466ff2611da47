import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { localClock, rfc3339 } from '../../../src/core/base/time.ts';

describe('localClock', () => {
  test('UTC has the seconds that the calendar of a zone without an offset has', () => {
    const [utc, zone] = [localClock('UTC'), localClock('Etc/GMT')];
    for (const ms of [0, 999, 1_000, -1, -1_001, 951_782_400_007, 1_795_451_476_965, -58_000_000_000_123])
      expect(utc(ms)).toBe(zone(ms));
  });
});

describe('rfc3339', () => {
  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [59_999, '1970-01-01T00:00:59.999Z'],
    [60_000, '1970-01-01T00:01:00.000Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
    [951_782_400_007, '2000-02-29T00:00:00.007Z'],
    [1_795_451_476_965, '2026-11-23T16:31:16.965Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
    [253_402_300_800_000, '+010000-01-01T00:00:00.000Z'],
    [-62_198_755_200_000, '-000001-01-01T00:00:00.000Z'],
  ])('%i ms is %s', (ms, written) => {
    expect(rfc3339(ms)).toBe(written);
  });

  test('times in any order are written as Date writes them', () => {
    const near = fc.integer({ min: 1_795_451_400_000, max: 1_795_451_600_000 });
    const far = fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 });
    fc.assert(
      fc.property(fc.array(fc.oneof(near, near, far)), (times) => {
        expect(times.map(rfc3339)).toEqual(times.map((ms) => new Date(ms).toISOString()));
      }),
    );
  });

  test('an invalid time is refused, and the next time is right', () => {
    expect(() => rfc3339(Number.NaN)).toThrow(RangeError);
    expect(() => rfc3339(9e15)).toThrow(RangeError);
    expect(rfc3339(60_000)).toBe('1970-01-01T00:01:00.000Z');
  });
});
