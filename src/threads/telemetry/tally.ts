import type { Counts, Signal } from './messages.ts';

/** As the packages report it: 0 is success. */
export type Exported = { readonly code: number; readonly error?: Error };

type Note = (level: 'info' | 'warn', message: string, fields: object) => void;

/** Counts what became of each signal, and says once when a collector does not take it, and when it does again. */
export class Tally {
  readonly #note: Note;
  readonly #exported = { traces: 0, metrics: 0, logs: 0 };
  readonly #dropped = { traces: 0, metrics: 0, logs: 0 };
  readonly #queued = { traces: 0, metrics: 0, logs: 0 };
  readonly #failing = new Set<Signal>();

  constructor(note: Note) {
    this.#note = note;
  }

  get counts(): { readonly exported: Counts; readonly dropped: Counts } {
    return { exported: { ...this.#exported }, dropped: { ...this.#dropped } };
  }

  /** Returns the number of records that wait for their export, or are under way. */
  queued(signal: Signal): number {
    return this.#queued[signal];
  }

  queue(signal: Signal): void {
    this.#queued[signal] += 1;
  }

  drop(signal: Signal, count: number): void {
    this.#dropped[signal] += count;
  }

  /** To be given to an exporter with so many of the signal, in place of `done`. */
  watching(signal: Signal, count: number, done: (result: Exported) => void): (result: Exported) => void {
    return (result) => {
      this.#queued[signal] -= count;
      if (result.code === 0) this.#exported[signal] += count;
      else this.#dropped[signal] += count;
      this.#tell(signal, result);
      done(result);
    };
  }

  #tell(signal: Signal, { code, error }: Exported): void {
    if (code !== 0 && !this.#failing.has(signal)) {
      this.#failing.add(signal);
      this.#note('warn', 'the collector of OpenTelemetry does not take what it is sent; that is dropped', {
        signal,
        reason: error?.message ?? 'unknown',
      });
    } else if (code === 0 && this.#failing.delete(signal))
      this.#note('info', 'the collector of OpenTelemetry takes what it is sent again', { signal });
  }
}
