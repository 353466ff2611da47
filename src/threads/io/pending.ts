const FIRST_PLACES = 64;

/**
 * Requests waiting for an answer, by number. Not a Map: under constant insertion and deletion a Map rehashes into a new
 * table every few dozen entries, and each old table that reaches the old generation keeps all later ones alive, with
 * their requests, until the next full collection. That makes the scavenges of an I/O thread several times as long.
 */
export class Pending<T, From = undefined> {
  /** At least twice as many places as there are waiting requests, so that a free one is always near. */
  #items: (T | undefined)[] = new Array<T | undefined>(FIRST_PLACES).fill(undefined);
  #numbers = new Float64Array(FIRST_PLACES);
  #marks = new Float64Array(FIRST_PLACES);
  #origins: (From | undefined)[] = new Array<From | undefined>(FIRST_PLACES).fill(undefined);
  #size = 0;
  #lastNumber = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns its number, which is never reused. `mark` is for `markOf`, `from` for `originOf`. */
  add(item: T, mark = 0, from?: From): number {
    if (2 * this.#size >= this.#items.length) this.#grow();
    // A request that waits longer than the others keeps its place; numbers that map to it are skipped.
    do this.#lastNumber += 1;
    while (this.#items[this.#placeOf(this.#lastNumber)] !== undefined);
    this.#put(this.#lastNumber, item, mark, from);
    this.#size += 1;
    return this.#lastNumber;
  }

  /** Returns the mark that `add` was given with the waiting request of this number. */
  markOf(number: number): number {
    return this.#marks[this.#placeOf(number)]!;
  }

  /**
   * Returns the origin that `add` was given with the request of this number; undefined if none with this number waits.
   */
  originOf(number: number): From | undefined {
    const place = this.#placeOf(number);
    return this.#numbers[place] === number ? this.#origins[place] : undefined;
  }

  /** Removes and returns the request; undefined when none with this number waits. */
  take(number: number): T | undefined {
    const place = this.#placeOf(number);
    if (this.#numbers[place] !== number) return undefined;
    const item = this.#items[place];
    if (item === undefined) return undefined;
    this.#items[place] = undefined;
    this.#origins[place] = undefined;
    this.#size -= 1;
    return item;
  }

  /** Removes and returns everything that waits. */
  takeAll(): T[] {
    const all = this.#items.filter((item) => item !== undefined);
    this.#items.fill(undefined);
    this.#origins.fill(undefined);
    this.#size = 0;
    return all;
  }

  /** The places are a power of two, so the number's low bits say which. */
  #placeOf(number: number): number {
    return number & (this.#items.length - 1);
  }

  #put(number: number, item: T, mark: number, from: From | undefined): void {
    const place = this.#placeOf(number);
    this.#items[place] = item;
    this.#numbers[place] = number;
    this.#marks[place] = mark;
    this.#origins[place] = from;
  }

  /** Numbers that differed in their low bits differ in one bit more too. */
  #grow(): void {
    const items = this.#items;
    const numbers = this.#numbers;
    const marks = this.#marks;
    const origins = this.#origins;
    this.#items = new Array<T | undefined>(2 * items.length).fill(undefined);
    this.#numbers = new Float64Array(2 * items.length);
    this.#marks = new Float64Array(2 * items.length);
    this.#origins = new Array<From | undefined>(2 * items.length).fill(undefined);
    for (const [place, item] of items.entries())
      if (item !== undefined) this.#put(numbers[place]!, item, marks[place]!, origins[place]);
  }
}
