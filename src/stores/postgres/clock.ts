import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Clock } from '../../ports/ports.ts';
import { ComparedClock } from '../../system/clock.ts';
import type { Postgres } from './postgres.ts';

/**
 * The database's time, read off a clock of the gateway that does not notice when its wall clock is set: what has
 * expired, or is locked, is the same for all gateways that share it, and one whose clock is wrong neither refuses nor
 * deletes what the others made.
 */
export class PostgresClock extends ComparedClock {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres, own: Clock) {
    super(own);
    this.#postgres = postgres;
  }

  /** Call it before the first use, and every few seconds. Fault: `store_unreachable`. */
  async sync(): Promise<Result<void, Fault>> {
    const read = await this.#postgres.attempt((on) =>
      this.compare(
        () => on.query<{ now: Date }>('SELECT clock_timestamp() AS now'),
        ({ rows }) => rows[0]?.now.getTime(),
      ),
    );
    return read.ok ? ok(undefined) : read;
  }
}
