import { assert } from '../base/result.ts';
import type { Envelope } from './envelope.ts';

/** The operation's slot in the registry: a small whole number, unique while the operation is in flight. */
export type OpNumber = number;

/** An operation's reservation, and its end. */
export type Held = { readonly microUsd: number; readonly untilMs: number };

export const RESERVATION_TTL_MS = 10 * 60_000; // (docs/spec.md, Budgets)
const NONE = -1;
/** The neighbour of an entry that is not in the list. */
const ASIDE = -2;
const SMALLEST = 1_024;

/**
 * Money held for operations in flight, one amount per operation. All are held for the same time, so they expire in the
 * order in which they were made. That order is a list, doubly linked because most of them end before they expire. It is
 * kept in columns of numbers, like the registry of operations, so that the garbage collector has no million objects to
 * walk. Reservations that a rollback restores keep their own expiry, outside the list.
 */
export class Reservations {
  readonly #ttlMs: number;
  readonly #envelopes: (Envelope | undefined)[] = [];
  #microUsd = new Float64Array(0);
  #expiresAtMs = new Float64Array(0);
  #older = new Int32Array(0);
  #younger = new Int32Array(0);
  #oldest = NONE;
  #youngest = NONE;
  /**
   * Operations with a restored reservation; once sorted, the last to expire comes first. Some may have released it, or
   * be in the list again.
   */
  #aside: OpNumber[] = [];
  #isAsideSorted = true;
  #size = 0;
  /** Called whenever an operation holds another amount. */
  onHeld: ((op: OpNumber, microUsd: number) => void) | undefined;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the operation's reservation in this envelope and all above it. */
  heldBy(op: OpNumber, envelope: Envelope): number {
    return op < this.#envelopes.length && this.#envelopes[op] === envelope ? this.#microUsd[op]! : 0;
  }

  amountOf(op: OpNumber): number {
    return op < this.#envelopes.length && this.#envelopes[op] !== undefined ? this.#microUsd[op]! : 0;
  }

  /** When the operation's reservation expires; 0: it has none. */
  heldUntilMs(op: OpNumber): number {
    return op < this.#envelopes.length && this.#envelopes[op] !== undefined ? this.#expiresAtMs[op]! : 0;
  }

  /** Releases what the operation holds beyond this amount. The rest keeps its expiry. */
  lower(op: OpNumber, microUsd: number): void {
    const held = this.amountOf(op);
    if (microUsd >= held) return;
    if (microUsd === 0) return void this.release(op);
    this.#microUsd[op] = microUsd;
    hold(this.#envelopes[op]!, microUsd - held);
    this.onHeld?.(op, microUsd);
  }

  /** Replaces whatever the operation holds. */
  take(op: OpNumber, envelope: Envelope, microUsd: number, nowMs: number): void {
    this.#replace(op, envelope, microUsd, nowMs + this.#ttlMs);
    this.#older[op] = this.#youngest;
    this.#younger[op] = NONE;
    if (this.#youngest === NONE) this.#oldest = op;
    else this.#younger[this.#youngest] = op;
    this.#youngest = op;
  }

  /** Restores an earlier reservation of the operation, with its earlier expiry. */
  putBack(op: OpNumber, envelope: Envelope, { microUsd, untilMs }: Held): void {
    this.#replace(op, envelope, microUsd, untilMs);
    this.#older[op] = ASIDE;
    this.#aside.push(op);
    this.#isAsideSorted = false;
  }

  #replace(op: OpNumber, envelope: Envelope, microUsd: number, untilMs: number): void {
    assert(microUsd > 0, 'nothing is not held');
    this.release(op);
    if (op >= this.#envelopes.length) this.#growTo(op + 1);
    this.#envelopes[op] = envelope;
    this.#microUsd[op] = microUsd;
    this.#expiresAtMs[op] = untilMs;
    this.#size += 1;
    hold(envelope, microUsd);
    this.onHeld?.(op, microUsd);
  }

  release(op: OpNumber): boolean {
    const envelope = op < this.#envelopes.length ? this.#envelopes[op] : undefined;
    if (envelope === undefined) return false;
    if (this.#older[op] !== ASIDE) this.#unlink(op);
    this.#envelopes[op] = undefined;
    this.#size -= 1;
    hold(envelope, -this.#microUsd[op]!);
    this.onHeld?.(op, 0);
    return true;
  }

  #unlink(op: OpNumber): void {
    const older = this.#older[op]!;
    const younger = this.#younger[op]!;
    if (older === NONE) this.#oldest = younger;
    else this.#younger[older] = younger;
    if (younger === NONE) this.#youngest = older;
    else this.#older[younger] = older;
  }

  /** Gives back expired reservations, at most `most` of them. Returns how many. */
  expire(nowMs: number, most: number): number {
    let expired = 0;
    while (this.#oldest !== NONE && expired < most && this.#expiresAtMs[this.#oldest]! <= nowMs) {
      this.release(this.#oldest);
      expired += 1;
    }
    return this.#aside.length === 0 ? expired : expired + this.#expireAside(nowMs, most - expired);
  }

  #expireAside(nowMs: number, most: number): number {
    const expiresAtMs = this.#expiresAtMs;
    if (!this.#isAsideSorted) this.#aside.sort((one, other) => expiresAtMs[other]! - expiresAtMs[one]!);
    this.#isAsideSorted = true;
    let expired = 0;
    for (let op = this.#aside.at(-1); op !== undefined && expired < most; op = this.#aside.at(-1)) {
      const isAside = this.#envelopes[op] !== undefined && this.#older[op] === ASIDE;
      if (isAside && expiresAtMs[op]! > nowMs) break;
      if (isAside && this.release(op)) expired += 1;
      this.#aside.pop();
    }
    return expired;
  }

  /** For a clock that was wrong and has been set back: no reservation lives longer than one made now. */
  setBack(nowMs: number): void {
    for (let op = this.#oldest; op !== NONE; op = this.#younger[op]!) {
      this.#expiresAtMs[op] = Math.min(this.#expiresAtMs[op]!, nowMs + this.#ttlMs);
    }
    for (const op of this.#aside) this.#expiresAtMs[op] = Math.min(this.#expiresAtMs[op]!, nowMs + this.#ttlMs);
  }

  #growTo(least: number): void {
    assert(Number.isInteger(least) && least > 0, 'an operation has a whole number, 0 or more');
    const capacity = Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(least)));
    this.#microUsd = grown(this.#microUsd, new Float64Array(capacity));
    this.#expiresAtMs = grown(this.#expiresAtMs, new Float64Array(capacity));
    this.#older = grown(this.#older, new Int32Array(capacity));
    this.#younger = grown(this.#younger, new Int32Array(capacity));
    while (this.#envelopes.length < capacity) this.#envelopes.push(undefined);
  }
}

function grown<Column extends Float64Array | Int32Array>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}

function hold(envelope: Envelope, microUsd: number): void {
  for (let each: Envelope | undefined = envelope; each !== undefined; each = each.parent) each.hold(microUsd);
}
