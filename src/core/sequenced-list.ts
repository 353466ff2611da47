import { lowerBound } from './lower-bound.ts';
import { assert } from './result.ts';

/** With fewer removed items than this, their empty places are not worth clearing away. */
const MIN_GONE = 32;

/**
 * Items in the order of their sequence numbers. They are added in that order and may be removed in any. A listing that
 * goes on after a number finds its place by binary search, so its last page costs what its first one did.
 */
export class SequencedList<T> {
  #numbers: number[] = [];
  #items: (T | undefined)[] = [];
  #gone = 0;

  get size(): number {
    return this.#items.length - this.#gone;
  }

  /** `number` is greater than every one added before; a smaller one is a defect and throws. */
  add(number: number, item: T): void {
    assert(
      this.#numbers.length === 0 || number > this.#numbers[this.#numbers.length - 1]!,
      'the numbers of a list grow',
    );
    this.#numbers.push(number);
    this.#items.push(item);
  }

  /** Does nothing if there is no such number. */
  remove(number: number): void {
    const at = this.#firstFrom(number);
    if (this.#numbers[at] !== number || this.#items[at] === undefined) return;
    this.#items[at] = undefined;
    this.#gone += 1;
    if (this.#gone >= MIN_GONE && this.#gone > this.#items.length / 2) this.#clear();
  }

  /** The items with a greater number, in the order of their numbers. */
  *after(number: number): Generator<T> {
    for (let at = this.#firstFrom(number + 1); at < this.#items.length; at += 1) {
      const item = this.#items[at];
      if (item !== undefined) yield item;
    }
  }

  /** The index of this number, or of the next greater one where it is not in the list. */
  #firstFrom(number: number): number {
    return lowerBound(this.#numbers.length, (at) => this.#numbers[at]! < number);
  }

  #clear(): void {
    const items = this.#items;
    this.#numbers = this.#numbers.filter((_, at) => items[at] !== undefined);
    this.#items = items.filter((item) => item !== undefined);
    this.#gone = 0;
  }
}
