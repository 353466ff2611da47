import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PeriodCalendar } from '../../../src/core/budget/period.ts';
import { runs } from '../../support/runs.ts';

const iso = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z');

describe('budget period', () => {
  // zone, now, day starts, day resets, month starts, month resets
  test.each([
    [
      'UTC',
      '2026-11-04T12:00:00Z',
      '2026-11-04T00:00:00Z',
      '2026-11-05T00:00:00Z',
      '2026-11-01T00:00:00Z',
      '2026-12-01T00:00:00Z',
    ],
    [
      'UTC',
      '2026-11-04T00:00:00Z',
      '2026-11-04T00:00:00Z',
      '2026-11-05T00:00:00Z',
      '2026-11-01T00:00:00Z',
      '2026-12-01T00:00:00Z',
    ],
    [
      'UTC',
      '2026-11-03T23:59:59.999Z',
      '2026-11-03T00:00:00Z',
      '2026-11-04T00:00:00Z',
      '2026-11-01T00:00:00Z',
      '2026-12-01T00:00:00Z',
    ],
    // A day of 23 hours, then one of 25.
    [
      'Europe/Berlin',
      '2026-03-29T12:00:00Z',
      '2026-03-28T23:00:00Z',
      '2026-03-29T22:00:00Z',
      '2026-02-28T23:00:00Z',
      '2026-03-31T22:00:00Z',
    ],
    [
      'Europe/Berlin',
      '2026-10-25T00:30:00Z',
      '2026-10-24T22:00:00Z',
      '2026-10-25T23:00:00Z',
      '2026-09-30T22:00:00Z',
      '2026-10-31T23:00:00Z',
    ],
    [
      'Europe/Berlin',
      '2026-10-25T01:30:00Z',
      '2026-10-24T22:00:00Z',
      '2026-10-25T23:00:00Z',
      '2026-09-30T22:00:00Z',
      '2026-10-31T23:00:00Z',
    ],
    [
      'Europe/Berlin',
      '2026-10-25T22:59:59.999Z',
      '2026-10-24T22:00:00Z',
      '2026-10-25T23:00:00Z',
      '2026-09-30T22:00:00Z',
      '2026-10-31T23:00:00Z',
    ],
    [
      'America/New_York',
      '2026-03-08T07:00:00Z',
      '2026-03-08T05:00:00Z',
      '2026-03-09T04:00:00Z',
      '2026-03-01T05:00:00Z',
      '2026-04-01T04:00:00Z',
    ],
    // The first of the month is the day the clock goes back.
    [
      'America/New_York',
      '2026-11-01T06:30:00Z',
      '2026-11-01T04:00:00Z',
      '2026-11-02T05:00:00Z',
      '2026-11-01T04:00:00Z',
      '2026-12-01T05:00:00Z',
    ],
    // Midnight does not exist: the clock goes from 23:59:59 to 01:00:00.
    [
      'America/Sao_Paulo',
      '2018-11-04T12:00:00Z',
      '2018-11-04T03:00:00Z',
      '2018-11-05T02:00:00Z',
      '2018-11-01T03:00:00Z',
      '2018-12-01T02:00:00Z',
    ],
    [
      'America/Sao_Paulo',
      '2018-11-04T02:59:59.999Z',
      '2018-11-03T03:00:00Z',
      '2018-11-04T03:00:00Z',
      '2018-11-01T03:00:00Z',
      '2018-12-01T02:00:00Z',
    ],
    [
      'Africa/Cairo',
      '2026-04-24T10:00:00Z',
      '2026-04-23T22:00:00Z',
      '2026-04-24T21:00:00Z',
      '2026-03-31T22:00:00Z',
      '2026-04-30T21:00:00Z',
    ],
    // At 24:00 the clock goes back to 23:00: the day has 25 hours, and its last hour is the second one of that name.
    [
      'Africa/Cairo',
      '2026-10-29T21:30:00Z',
      '2026-10-28T21:00:00Z',
      '2026-10-29T22:00:00Z',
      '2026-09-30T21:00:00Z',
      '2026-10-31T22:00:00Z',
    ],
    // At 00:01 the clock goes back to 23:01: the new day has begun for one minute and goes on.
    [
      'America/St_Johns',
      '2010-11-07T02:30:30Z',
      '2010-11-07T02:30:00Z',
      '2010-11-08T03:30:00Z',
      '2010-11-01T02:30:00Z',
      '2010-12-01T03:30:00Z',
    ],
    [
      'America/St_Johns',
      '2010-11-07T03:00:00Z',
      '2010-11-07T02:30:00Z',
      '2010-11-08T03:30:00Z',
      '2010-11-01T02:30:00Z',
      '2010-12-01T03:30:00Z',
    ],
    // 30 December 2011 never happened on Samoa.
    [
      'Pacific/Apia',
      '2011-12-30T09:59:59Z',
      '2011-12-29T10:00:00Z',
      '2011-12-30T10:00:00Z',
      '2011-12-01T10:00:00Z',
      '2011-12-31T10:00:00Z',
    ],
    [
      'Pacific/Apia',
      '2011-12-30T10:00:00Z',
      '2011-12-30T10:00:00Z',
      '2011-12-31T10:00:00Z',
      '2011-12-01T10:00:00Z',
      '2011-12-31T10:00:00Z',
    ],
    // Offsets of a quarter and of half an hour; a clock change of half an hour.
    [
      'Asia/Kathmandu',
      '2026-06-14T18:15:00Z',
      '2026-06-14T18:15:00Z',
      '2026-06-15T18:15:00Z',
      '2026-05-31T18:15:00Z',
      '2026-06-30T18:15:00Z',
    ],
    [
      'Australia/Lord_Howe',
      '2026-10-04T00:00:00Z',
      '2026-10-03T13:30:00Z',
      '2026-10-04T13:00:00Z',
      '2026-09-30T13:30:00Z',
      '2026-10-31T13:00:00Z',
    ],
    [
      'Pacific/Kiritimati',
      '2026-01-01T00:00:00Z',
      '2025-12-31T10:00:00Z',
      '2026-01-01T10:00:00Z',
      '2025-12-31T10:00:00Z',
      '2026-01-31T10:00:00Z',
    ],
    // Leap day, February without one, the end of the year.
    [
      'UTC',
      '2028-02-29T23:00:00Z',
      '2028-02-29T00:00:00Z',
      '2028-03-01T00:00:00Z',
      '2028-02-01T00:00:00Z',
      '2028-03-01T00:00:00Z',
    ],
    [
      'UTC',
      '2027-02-28T23:00:00Z',
      '2027-02-28T00:00:00Z',
      '2027-03-01T00:00:00Z',
      '2027-02-01T00:00:00Z',
      '2027-03-01T00:00:00Z',
    ],
    [
      'Asia/Tokyo',
      '2028-02-29T14:59:59Z',
      '2028-02-28T15:00:00Z',
      '2028-02-29T15:00:00Z',
      '2028-01-31T15:00:00Z',
      '2028-02-29T15:00:00Z',
    ],
    [
      'America/Los_Angeles',
      '2027-01-01T07:59:59Z',
      '2026-12-31T08:00:00Z',
      '2027-01-01T08:00:00Z',
      '2026-12-01T08:00:00Z',
      '2027-01-01T08:00:00Z',
    ],
    [
      'America/Los_Angeles',
      '2027-01-01T08:00:00Z',
      '2027-01-01T08:00:00Z',
      '2027-01-02T08:00:00Z',
      '2027-01-01T08:00:00Z',
      '2027-02-01T08:00:00Z',
    ],
  ])('turns in %s at %s: the day began %s and ends %s, the month %s and %s', (zone, now, ...expected) => {
    const { dailyStartMs, dailyResetMs, monthlyStartMs, monthlyResetMs } = new PeriodCalendar(zone).windowAt(
      Date.parse(now),
    );
    expect([dailyStartMs, dailyResetMs, monthlyStartMs, monthlyResetMs].map(iso)).toEqual(expected);
  });

  test('the window stays the same within a day, and follows a clock set back', () => {
    const calendar = new PeriodCalendar('Europe/Berlin');
    const evening = calendar.windowAt(Date.parse('2026-11-04T22:00:00Z'));
    expect(calendar.windowAt(Date.parse('2026-11-04T08:00:00Z'))).toBe(evening);
    const next = calendar.windowAt(Date.parse('2026-11-04T23:00:00Z'));
    expect(iso(next.dailyStartMs)).toBe('2026-11-04T23:00:00Z');
    expect(calendar.windowAt(Date.parse('2026-11-04T22:59:00Z'))).toEqual(evening);
  });

  test('days and months follow each other without gap or overlap in every zone', () => {
    const calendars = [
      'UTC',
      'Europe/Berlin',
      'America/Sao_Paulo',
      'America/St_Johns',
      'Africa/Cairo',
      'Pacific/Apia',
      'Australia/Lord_Howe',
      'Asia/Tehran',
      'America/Havana',
      'Africa/Casablanca',
    ].map((zone) => new PeriodCalendar(zone));
    fc.assert(
      fc.property(
        fc.constantFrom(...calendars),
        fc.integer({ min: Date.parse('1990-01-01'), max: Date.parse('2037-12-31') }),
        (calendar, nowMs) => {
          const window = calendar.windowAt(nowMs);
          expect(window.dailyStartMs).toBeLessThanOrEqual(nowMs);
          expect(window.dailyResetMs).toBeGreaterThan(nowMs);
          expect(window.monthlyStartMs).toBeLessThanOrEqual(window.dailyStartMs);
          expect(window.monthlyResetMs).toBeGreaterThanOrEqual(window.dailyResetMs);
          expect(calendar.windowAt(window.dailyResetMs).dailyStartMs).toBe(window.dailyResetMs);
          expect(calendar.windowAt(window.dailyStartMs - 1).dailyResetMs).toBe(window.dailyStartMs);
          expect(calendar.windowAt(window.monthlyResetMs).monthlyStartMs).toBe(window.monthlyResetMs);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});
