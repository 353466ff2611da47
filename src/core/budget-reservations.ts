import type { Envelope } from './budget-envelope.ts';
import type { OpId } from './ids.ts';

type Reservation = { readonly envelope: Envelope; readonly microUsd: number; expiresAtMs: number };

/**
 * Money held for operations in flight, one amount per operation. All live equally long, so the order in which they were
 * made is the order in which they expire.
 */
export class Reservations {
  readonly #ttlMs: number;
  readonly #byOp = new Map<OpId, Reservation>();
  #nextExpiryMs = Infinity; // nothing expires before

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#byOp.size;
  }

  /** What the operation holds in this envelope and all above it. */
  heldBy(opId: OpId, envelope: Envelope): number {
    if (this.#byOp.size === 0) return 0;
    const held = this.#byOp.get(opId);
    return held?.envelope === envelope ? held.microUsd : 0;
  }

  /** In place of whatever the operation holds. */
  take(opId: OpId, envelope: Envelope, microUsd: number, nowMs: number): void {
    this.release(opId);
    if (microUsd === 0) return;
    const expiresAtMs = nowMs + this.#ttlMs;
    this.#byOp.set(opId, { envelope, microUsd, expiresAtMs });
    if (expiresAtMs < this.#nextExpiryMs) this.#nextExpiryMs = expiresAtMs;
    hold(envelope, microUsd);
  }

  release(opId: OpId): boolean {
    if (this.#byOp.size === 0) return false;
    const held = this.#byOp.get(opId);
    if (held === undefined) return false;
    this.#byOp.delete(opId);
    hold(held.envelope, -held.microUsd);
    return true;
  }

  /** Gives back what is over, at most `most` reservations at a time. Returns how many. */
  expire(nowMs: number, most: number): number {
    if (nowMs < this.#nextExpiryMs) return 0;
    let expired = 0;
    for (const [opId, { expiresAtMs }] of this.#byOp) {
      if (expiresAtMs > nowMs || expired === most) {
        this.#nextExpiryMs = expiresAtMs;
        return expired;
      }
      this.release(opId);
      expired += 1;
    }
    this.#nextExpiryMs = Infinity;
    return expired;
  }

  /** The clock was wrong and is set back: nothing lives longer than from now on. */
  setBack(nowMs: number): void {
    this.#nextExpiryMs = Infinity;
    for (const held of this.#byOp.values()) {
      held.expiresAtMs = Math.min(held.expiresAtMs, nowMs + this.#ttlMs);
      this.#nextExpiryMs = Math.min(this.#nextExpiryMs, held.expiresAtMs);
    }
  }
}

function hold(envelope: Envelope, microUsd: number): void {
  for (let each: Envelope | undefined = envelope; each !== undefined; each = each.parent) each.hold(microUsd);
}
