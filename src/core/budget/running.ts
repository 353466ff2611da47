import type { Period } from './config.ts';
import type { Epoch } from './envelope.ts';
import { PeriodCalendar, type PeriodWindow } from './period.ts';

const HOUR_MS = 3_600_000;
// A clock set back by no more than this is waited for, as the ledger of a cluster does. One that steps further was
// wrong before, or is now.
const MAX_STEP_MS = HOUR_MS;
// Readings that come late are no steps.
const MIN_STEP_BACK_MS = 30_000;
// A clock that was set may be set once more for so long.
const IN_DOUBT_MS = 24 * HOUR_MS;
// A stored day may begin this far ahead of the clock, after a step back or a change of zone. Further ahead, it was
// written by a wrong clock.
const MAX_STORED_AHEAD_MS = 28 * HOUR_MS;

/** The other period that a clock shows that was set; `isKnown`: as the one before. */
export type Turn = { readonly period: Period; readonly isKnown: boolean };

type Listeners = {
  /** The clock was set back: nothing has happened later than now. */
  readonly onSetBack: (nowMs: number) => void;
  /** Called before the epoch is another one. */
  readonly onEnd: (period: Period) => void;
  /** Called before the new periods are in the window. */
  readonly onTurn: (turns: readonly Turn[]) => void;
};

/**
 * The day and the month that run, by a clock that people set.
 *
 * - A period that has ended is not opened again by a clock that is set back by up to an hour: it is waited for.
 * - A clock that steps further is believed, and periods are turned: nothing that was counted is forgotten.
 * - A new time zone takes effect at once: the date goes on, and ends at its midnight in the new zone.
 */
export class RunningPeriods {
  readonly epoch: Epoch = { month: 0, day: 0, monthBefore: 0, dayBefore: 0 };
  /** The names of the month and the day to which the clock may return. */
  readonly #before = { month: '', day: '' };
  readonly #listeners: Listeners;
  #calendar: PeriodCalendar;
  #window: PeriodWindow;
  /** The time of the latest call, in milliseconds since the Unix epoch. */
  #timeMs: number;
  #isInDoubtUntilMs = -Infinity;

  constructor(timezone: string, nowMs: number, listeners: Listeners) {
    this.#calendar = new PeriodCalendar(timezone);
    this.#window = this.#calendar.windowAt(nowMs);
    this.#timeMs = nowMs;
    this.#listeners = listeners;
  }

  get timeMs(): number {
    return this.#timeMs;
  }

  get window(): PeriodWindow {
    return this.#window;
  }

  /** The clock was set lately, so it may return. */
  get isInDoubt(): boolean {
    return this.#timeMs < this.#isInDoubtUntilMs;
  }

  set timezone(timezone: string) {
    if (timezone === this.#calendar.timezone) return;
    this.#calendar = new PeriodCalendar(timezone);
    const there = this.#calendar.windowAt(this.#timeMs);
    this.#enter(there.day < this.#window.day ? this.#calendar.windowOfDay(this.#window.day) : there);
  }

  advance(nowMs: number): void {
    const stepMs = nowMs - this.#timeMs;
    if (stepMs > 0) {
      this.#timeMs = nowMs;
      if (nowMs >= this.#window.dailyResetMs) this.#reach(nowMs, stepMs > MAX_STEP_MS);
    } else if (stepMs < -MIN_STEP_BACK_MS) {
      this.#timeMs = nowMs;
      this.#listeners.onSetBack(nowMs);
      if (stepMs < -MAX_STEP_MS) this.#reach(nowMs, true);
    }
  }

  /** Goes on to a stored day that a clock set back has not reached again yet. */
  catchUp(day: string): void {
    if (day <= this.#window.day) return;
    const window = this.#calendar.windowOfDay(day);
    if (window.dailyStartMs - this.#timeMs <= MAX_STORED_AHEAD_MS) this.#enter(window);
  }

  #reach(nowMs: number, isStep: boolean): void {
    const window = this.#calendar.windowAt(nowMs);
    if (isStep) this.#turn(window);
    this.#enter(window);
    if (isStep) this.#isInDoubtUntilMs = nowMs + IN_DOUBT_MS;
  }

  /** Has the periods turned that the clock shows again, or that have not been reached yet. */
  #turn({ month, day }: PeriodWindow): void {
    const { month: monthNow, day: dayNow } = this.#window;
    const isMonth = month < monthNow || (month > monthNow && month === this.#before.month);
    const isDay = day < dayNow || (day > dayNow && day === this.#before.day);
    if (!isMonth && !isDay) return;
    this.#listeners.onTurn([
      ...(isMonth ? [{ period: 'monthly', isKnown: month === this.#before.month } as const] : []),
      ...(isDay ? [{ period: 'daily', isKnown: day === this.#before.day } as const] : []),
    ]);
    if (isMonth) this.#before.month = monthNow;
    if (isDay) this.#before.day = dayNow;
    this.#window = { ...this.#window, ...(isMonth && { month }), ...(isDay && { day }) };
  }

  #enter(window: PeriodWindow): void {
    const isDay = window.day !== this.#window.day;
    const isMonth = window.month !== this.#window.month;
    if (isDay) this.#listeners.onEnd('daily');
    if (isMonth) this.#listeners.onEnd('monthly');
    if (isDay) this.#begin('day');
    if (isMonth) this.#begin('month');
    this.#window = window;
  }

  /** In doubt, what is spent is kept beside what was spent before. */
  #begin(period: 'month' | 'day'): void {
    if (!this.isInDoubt) {
      this.#before[period] = this.#window[period];
      this.epoch[`${period}Before`] = this.epoch[period];
    }
    this.epoch[period] += 1;
  }
}
