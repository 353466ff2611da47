/** Holds a running call's answer back: during a pause, or for good if the call's end came first. */

/** `cancelled` and `closed`: nobody waits for an answer any more. */
export type Ending = {
  readonly kind: 'terminated' | 'cancelled' | 'closed';
  readonly reason: string;
};

export class Ended extends Error {
  readonly ending: Ending;

  constructor(ending: Ending) {
    super(ending.reason);
    this.name = 'Ended';
    this.ending = ending;
  }
}

export class Control {
  readonly #stop = new AbortController();
  /** Settles when the call has to end. */
  readonly ended: Promise<Ending>;
  #end: (ending: Ending) => void = () => {};
  #resumed: Promise<void> | undefined;
  #resume: () => void = () => {};
  #ending: Ending | undefined;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  get isPaused(): boolean {
    return this.#resumed !== undefined;
  }

  pause(): void {
    if (this.#ending !== undefined) return;
    this.#resumed ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resumed = undefined;
    this.#resume();
  }

  /** The first end counts. */
  end(ending: Ending): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    this.resume();
    this.#end(ending);
    this.#stop.abort(new Ended(ending));
  }

  throwIfEnded(): void {
    if (this.#ending !== undefined) throw new Ended(this.#ending);
  }

  /** Resolves when it is not paused. Throws `Ended`. */
  async untilRunning(): Promise<void> {
    while (this.#resumed !== undefined) await this.#resumed;
    this.throwIfEnded();
  }

  /** Resolves as `work` does, unless the end comes first: throws `Ended` then. */
  async unlessEnded<T>(work: Promise<T>): Promise<T> {
    work.catch(() => {}); // its failure is nobody's after the end
    return Promise.race([
      work,
      this.ended.then((ending): never => {
        throw new Ended(ending);
      }),
    ]);
  }
}
