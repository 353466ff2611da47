/** The current operations on their way to one reader, a page at a time. */
export class Snapshot {
  #rows: Buffer[] = [];
  #next = 0;
  #isAwaited = false;
  #isComplete = false;
  #cursor: string | undefined;

  /** Where the next page begins; undefined for the first. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** While a page is on its way, or its rows are not sent, the events that follow it wait. */
  get isHolding(): boolean {
    return this.#isAwaited || this.#next < this.#rows.length;
  }

  /** True when the next page should be asked for. */
  get wantsPage(): boolean {
    return !this.#isComplete && !this.isHolding;
  }

  await(): void {
    this.#isAwaited = true;
  }

  /** `next`: where the page after this one begins; undefined for the last. */
  take(rows: Buffer[], next: string | undefined): void {
    this.#isAwaited = false;
    this.#isComplete = next === undefined;
    this.#cursor = next;
    this.#rows = rows;
    this.#next = 0;
  }

  next(): Buffer | undefined {
    const row = this.#rows[this.#next];
    if (row === undefined) return undefined;
    this.#next += 1;
    if (this.#next === this.#rows.length) {
      this.#rows = [];
      this.#next = 0;
    }
    return row;
  }
}
