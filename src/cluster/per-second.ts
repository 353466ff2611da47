/** Limits requests per second that anybody can cause and others have to answer. */
export class PerSecond {
  readonly #most: number;
  #sinceMs = 0;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Whether there is one left in this second. `nowMs`: by a clock that nobody sets. */
  take(nowMs: number): boolean {
    if (nowMs - this.#sinceMs >= 1_000) {
      this.#sinceMs = nowMs;
      this.#taken = 0;
    }
    this.#taken += 1;
    return this.#taken <= this.#most;
  }
}
