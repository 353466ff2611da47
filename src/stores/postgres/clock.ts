import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Clock } from '../../ports/ports.ts';
import type { Postgres } from './postgres.ts';

/**
 * The database's time, read off a clock of the gateway that does not notice when its wall clock is set: what has
 * expired, or is locked, is the same for all gateways that share it, and one whose clock is wrong neither refuses nor
 * deletes what the others made.
 */
export class PostgresClock implements Clock {
  readonly #postgres: Postgres;
  readonly #own: Clock;
  /** How far the database is ahead. */
  #aheadMs = 0;

  constructor(postgres: Postgres, own: Clock) {
    this.#postgres = postgres;
    this.#own = own;
  }

  nowMs(): number {
    return this.#own.nowMs() + this.#aheadMs;
  }

  /** Call it before the first use, and every few seconds: clocks are set. Fault: `store_unreachable`. */
  async sync(): Promise<Result<void, Fault>> {
    const read = await this.#postgres.attempt(async (on) => {
      const askedMs = this.#own.nowMs();
      const {
        rows: [row],
      } = await on.query<{ now: Date }>('SELECT clock_timestamp() AS now');
      return { askedMs, theirsMs: row?.now.getTime() ?? askedMs, answeredMs: this.#own.nowMs() };
    });
    if (!read.ok) return read;
    const { askedMs, theirsMs, answeredMs } = read.value;
    // The database read its clock at some moment in between. No more is known, so a difference that fits is kept.
    const [leastMs, mostMs] = [theirsMs - answeredMs, theirsMs - askedMs];
    if (this.#aheadMs < leastMs || this.#aheadMs > mostMs) this.#aheadMs = Math.round((leastMs + mostMs) / 2);
    return ok(undefined);
  }
}
