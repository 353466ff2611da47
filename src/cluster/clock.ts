import type { Clock } from '../ports/ports.ts';
import { ComparedClock, createSteadyClock } from '../system/clock.ts';

/** A gateway whose clock is further off than this does not join its cluster; one that drifts so far is degraded. */
const MAX_SKEW_MS = 5_000;

/**
 * The time of the database, by which all gateways of a cluster go, as this one knows it: each beat compares it with a
 * clock that nobody sets. After the machine was suspended it is behind until the next beat, before which its gateway
 * does not serve.
 */
export class ClusterClock extends ComparedClock {
  readonly #wallMs: () => number;

  constructor(wallMs: () => number = Date.now, steady: Clock = createSteadyClock()) {
    super(steady);
    this.#wallMs = wallMs;
  }

  /** How far the clock of this machine is ahead of the database's. */
  get skewMs(): number {
    return Math.round(this.#wallMs() - this.nowMs());
  }

  /** Whether the clock of this machine is wrong. */
  get isOff(): boolean {
    return Math.abs(this.skewMs) > MAX_SKEW_MS;
  }
}
