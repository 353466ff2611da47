/** First in, first out, in constant time. */
export class Fifo<T> {
  readonly #items: T[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  add(item: T): void {
    this.#items.push(item);
  }

  /** Undefined if it is empty. */
  take(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#first += 1;
    // Half of a long list is given back at a time.
    if (this.#first > 1_000 && this.#first * 2 > this.#items.length) {
      this.#items.splice(0, this.#first);
      this.#first = 0;
    }
    return item;
  }
}
