import { FAILURES, WRITTEN } from '../audit/audit-counters.ts';
import type { HeldMessage, MainToDoors, MainToIo } from '../protocol.ts';

type Counters = Int32Array<SharedArrayBuffer>;

export type HeldAnswersOptions = {
  /** The counters of the audit log: see `audit-counters.ts`. */
  readonly counters: SharedArrayBuffer;
  readonly release: (firstId: number, replies: readonly MainToDoors[]) => void;
  /** Calls back once the number of the last batch written is another than this one. */
  readonly onWritten?: (counters: Counters, written: number, look: () => void) => void;
};

/**
 * The answers of an I/O thread that wait until what they say is in the audit log. They come straight from the main
 * thread, which hands the entries to the audit thread at the same time; shared counters say what is written.
 *
 * When a write fails, later batches get higher numbers all the same, so the number of the last one written does not say
 * what became of those before the failure: from then on they wait for the main thread, which knows.
 */
export class HeldAnswers {
  readonly #counters: Counters;
  readonly #options: Required<HeldAnswersOptions>;
  /** Oldest first. */
  #held: HeldMessage[] = [];
  #isWaiting = false;

  constructor(options: HeldAnswersOptions) {
    this.#options = { onWritten: waitForCount, ...options };
    this.#counters = new Int32Array(options.counters);
  }

  /** Takes what is to be held, and returns the rest. */
  take(messages: readonly MainToIo[]): readonly MainToDoors[] {
    const others: MainToDoors[] = [];
    for (const message of messages) {
      if (message.type === 'held') this.#held.push(message);
      else if (message.type === 'not-recorded') this.#dropFrom(message.from);
      else others.push(message);
    }
    this.#look();
    return others;
  }

  /** Releases the held answers whose batches are before this one, which are written, and drops the others. */
  #dropFrom(from: number): void {
    const held = this.#held;
    this.#held = [];
    for (const each of held) if (isBefore(each.batch, from)) this.#release(each);
  }

  /** Lets go what is written. */
  #look(): void {
    if (this.#held.length === 0) return;
    const written = Atomics.load(this.#counters, WRITTEN);
    // Read after it: what was written after a failure comes with the count of that failure.
    const failures = Atomics.load(this.#counters, FAILURES);
    const isHeld = (each: HeldMessage): boolean => each.failures !== failures || isBefore(written, each.batch);
    const first = this.#held.findIndex(isHeld);
    for (const each of this.#held.splice(0, first === -1 ? this.#held.length : first)) this.#release(each);
    if (this.#held.length === 0 || this.#isWaiting) return;
    this.#isWaiting = true;
    this.#options.onWritten(this.#counters, written, () => {
      this.#isWaiting = false;
      this.#look();
    });
  }

  #release({ firstId, replies }: HeldMessage): void {
    this.#options.release(firstId, replies);
  }
}

/** Batch numbers wrap around, so their difference is compared. */
const isBefore = (batch: number, other: number): boolean => ((batch - other) | 0) < 0;

function waitForCount(counters: Counters, written: number, look: () => void): void {
  const { async: isLater, value } = Atomics.waitAsync(counters, WRITTEN, written);
  if (isLater) void value.then(look);
  else look(); // it has changed already
}
