import { assert } from './result.ts';

/** Below this, the places of what has gone are not worth clearing away. */
const MIN_GONE = 32;

/**
 * What comes in the order of growing numbers, and may go again, in the order in which it came. A listing that goes on
 * after a number finds its place by halving, so its last page costs what its first one did.
 */
export class Roll<T> {
  #numbers: number[] = [];
  #items: (T | undefined)[] = [];
  #gone = 0;

  get size(): number { return this.#items.length - this.#gone; }

  /** The number is greater than every one before it. */
  add(number: number, item: T): void {
    assert(this.#numbers.length === 0 || number > this.#numbers[this.#numbers.length - 1]!, 'the numbers of a roll grow');
    this.#numbers.push(number);
    this.#items.push(item);
  }

  remove(number: number): void {
    const at = this.#firstFrom(number);
    if (this.#numbers[at] !== number || this.#items[at] === undefined) return;
    this.#items[at] = undefined;
    this.#gone += 1;
    if (this.#gone >= MIN_GONE && this.#gone > this.#items.length / 2) this.#clear();
  }

  /** Those with a greater number, in their order. */
  *after(number: number): Generator<T> {
    for (let at = this.#firstFrom(number + 1); at < this.#items.length; at += 1) {
      const item = this.#items[at];
      if (item !== undefined) yield item;
    }
  }

  /** The place of the first number that is not less: its own, where it is there. */
  #firstFrom(number: number): number {
    let [low, high] = [0, this.#numbers.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#numbers[middle]! < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #clear(): void {
    const items = this.#items;
    this.#numbers = this.#numbers.filter((_, at) => items[at] !== undefined);
    this.#items = items.filter((item) => item !== undefined);
    this.#gone = 0;
  }
}
