const FIRST_PLACES = 64;

/**
 * What waits for an answer, by the number that it was given. Not a Map: one that things enter and leave all the time makes a
 * new table every few dozen of them, and each old table that has come into the old generation keeps all later ones alive, with
 * the requests in them, until the next full collection. Scavenges of an I/O thread took several times as long for it.
 */
export class Pending<T> {
  /** Twice as many places as there is waiting, at least, so that a free one is always near. */
  #items: (T | undefined)[] = new Array<T | undefined>(FIRST_PLACES).fill(undefined);
  #numbers = new Float64Array(FIRST_PLACES);
  #size = 0;
  #lastNumber = 0;

  get size(): number { return this.#size; }

  /** Answers its number, which is given only once. */
  add(item: T): number {
    if (2 * this.#size >= this.#items.length) this.#grow();
    // Whoever waits longer than the others keeps its place, and with it the numbers that belong there.
    do this.#lastNumber += 1; while (this.#items[this.#placeOf(this.#lastNumber)] !== undefined);
    this.#put(this.#lastNumber, item);
    this.#size += 1;
    return this.#lastNumber;
  }

  /** Hands it over, once; undefined when nothing with this number waits. */
  take(number: number): T | undefined {
    const place = this.#placeOf(number);
    if (this.#numbers[place] !== number) return undefined;
    const item = this.#items[place];
    if (item === undefined) return undefined;
    this.#items[place] = undefined;
    this.#size -= 1;
    return item;
  }

  /** Hands over everything that waits. */
  takeAll(): T[] {
    const all = this.#items.filter((item) => item !== undefined);
    this.#items.fill(undefined);
    this.#size = 0;
    return all;
  }

  /** The places are a power of two, so the number's low bits say which. */
  #placeOf(number: number): number { return number & (this.#items.length - 1); }

  #put(number: number, item: T): void {
    const place = this.#placeOf(number);
    this.#items[place] = item;
    this.#numbers[place] = number;
  }

  /** Numbers that differed in their low bits differ in one bit more too. */
  #grow(): void {
    const items = this.#items;
    const numbers = this.#numbers;
    this.#items = new Array<T | undefined>(2 * items.length).fill(undefined);
    this.#numbers = new Float64Array(2 * items.length);
    for (const [place, item] of items.entries()) if (item !== undefined) this.#put(numbers[place]!, item);
  }
}
