/** The figures of a load so far: waits in histograms of three digits, decisions, errors, and every second by itself. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { Answer } from './lane.ts';

/** In milliseconds. */
export type Waits = {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly p9999: number;
  readonly longest: number;
  readonly mean: number;
};

/** A second of the load; the waits are those of the answers that came in it. */
export type Second = {
  readonly due: number;
  readonly answered: number;
  readonly errors: number;
  /** How many were due by its end and had no answer. */
  readonly waiting: number;
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
};

export type Results = {
  readonly due: number;
  /** With a decision. */
  readonly answered: number;
  readonly decisions: Readonly<Record<'allow' | 'deny' | 'pending', number>>;
  readonly errors: number;
  /** Reasons of denies, of requests to people and of errors, the most frequent first. */
  readonly reasons: readonly { readonly kind: Answer['kind']; readonly reason: string; readonly count: number }[];
  /** From when checks were due until they were answered. */
  readonly waits: Waits;
  /** The wait that this share of the checks has not exceeded, from 0 to 1. */
  readonly curve: readonly { readonly share: number; readonly ms: number }[];
  readonly seconds: readonly Second[];
};

const MAX_REASONS = 20;
const OTHER_REASONS = 'other reasons';
const CURVE = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998];
const TAIL = [0.999, 0.9995, 0.9998, 0.9999, 0.99995, 0.99998, 0.99999, 0.999999, 1];

const histogram = (): Histogram => build({ numberOfSignificantValueDigits: 3, autoResize: true });
const microseconds = (ms: number): number => Math.max(0, Math.round(ms * 1_000));
const msAt = (waits: Histogram, percent: number): number =>
  waits.totalCount === 0 ? 0 : Math.min(waits.getValueAtPercentile(percent), waits.maxValue) / 1_000;
const longestOf = (waits: Histogram): number => (waits.totalCount === 0 ? 0 : waits.maxValue / 1_000);

export class Measurements {
  readonly #waits = histogram();
  readonly #late = histogram();
  /** Counts in the current second. */
  readonly #second = histogram();
  readonly #seconds: Second[] = [];
  readonly #reasons = new Map<string, { kind: Answer['kind']; reason: string; count: number }>();
  readonly #counts = { allow: 0, deny: 0, pending: 0, error: 0 };
  #due = 0;
  #before = { due: 0, errors: 0 };

  /** A check was due, and the client came to it so much later. */
  due(lateMs: number): void {
    this.#due += 1;
    this.#late.recordValue(microseconds(lateMs));
  }

  /** The wait of an error is not counted: a refusal is quick. */
  answer({ kind, reason }: Answer, waitMs: number): void {
    this.#counts[kind] += 1;
    if (kind !== 'error') {
      this.#waits.recordValue(microseconds(waitMs));
      this.#second.recordValue(microseconds(waitMs));
    }
    if (kind !== 'allow') this.#count(kind, reason);
  }

  /** A check that got no answer has waited at least so long. */
  unanswered(waitMs: number): void {
    this.#counts.error += 1;
    this.#waits.recordValue(microseconds(waitMs));
    this.#count('error', 'no answer');
  }

  get errors(): number {
    return this.#counts.error;
  }

  get settled(): number {
    return this.#counts.allow + this.#counts.deny + this.#counts.pending + this.#counts.error;
  }

  /** How much later than due the client itself came to nearly every check. */
  get lateP99Ms(): number {
    return msAt(this.#late, 99);
  }

  closeSecond(): Second {
    const second: Second = {
      due: this.#due - this.#before.due,
      answered: this.#second.totalCount,
      errors: this.errors - this.#before.errors,
      waiting: this.#due - this.settled,
      p50: msAt(this.#second, 50),
      p99: msAt(this.#second, 99),
      longest: longestOf(this.#second),
    };
    this.#before = { due: this.#due, errors: this.errors };
    this.#second.reset();
    this.#seconds.push(second);
    return second;
  }

  results(): Results {
    const { allow, deny, pending, error } = this.#counts;
    const waits = this.#waits;
    return {
      due: this.#due,
      answered: allow + deny + pending,
      decisions: { allow, deny, pending },
      errors: error,
      reasons: [...this.#reasons.values()].sort((one, other) => other.count - one.count),
      waits: {
        p50: msAt(waits, 50),
        p90: msAt(waits, 90),
        p99: msAt(waits, 99),
        p999: msAt(waits, 99.9),
        p9999: msAt(waits, 99.99),
        longest: longestOf(waits),
        mean: waits.totalCount === 0 ? 0 : waits.mean / 1_000,
      },
      curve: [...CURVE, ...TAIL].map((share) => ({ share, ms: msAt(waits, share * 100) })),
      seconds: this.#seconds,
    };
  }

  #count(kind: Answer['kind'], reason: string): void {
    const name = `${kind} ${reason}`;
    const known = this.#reasons.get(name);
    if (known !== undefined) known.count += 1;
    else if (this.#reasons.size < MAX_REASONS) this.#reasons.set(name, { kind, reason, count: 1 });
    else if (reason !== OTHER_REASONS) this.#count(kind, OTHER_REASONS);
    else this.#reasons.set(name, { kind, reason, count: 1 });
  }
}
