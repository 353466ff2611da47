/** A queue of background jobs, with limits on how many wait and how many run. */
export type BacklogOptions = {
  readonly capacity: number;
  readonly concurrency: number;
  /** Told when a job rejects. That is a bug: jobs turn what can go wrong into values. */
  readonly onError: (error: unknown) => void;
};

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #waiting: (() => Promise<void>)[] = [];
  #running = 0;
  #whenIdle: (() => void)[] = [];

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** False when it is full; the job is not run then. Never runs it before it returns. */
  push(job: () => Promise<void>): boolean {
    if (this.#waiting.length >= this.#options.capacity) return false;
    this.#waiting.push(job);
    queueMicrotask(() => this.#next());
    return true;
  }

  /** Resolves when nothing waits or runs. */
  idle(): Promise<void> {
    if (this.#running === 0 && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #next(): void {
    if (this.#running >= this.#options.concurrency) return;
    const job = this.#waiting.shift();
    if (job === undefined) return;
    this.#running++;
    job()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running--;
        this.#next();
        if (this.#running > 0 || this.#waiting.length > 0) return;
        for (const resolve of this.#whenIdle.splice(0)) resolve();
      });
  }
}
