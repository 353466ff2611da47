import { assert } from './result.ts';

/** A list that is sorted on the first read after a change, because most additions belong at its end. */
export class LazySortedList<T> {
  readonly #compare: (a: T, b: T) => number;
  #items: T[] = [];
  #isSorted = true;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    const last = this.#items.at(-1);
    this.#isSorted &&= last === undefined || this.#compare(last, item) <= 0;
    this.#items.push(item);
  }

  /** Any item equal to this one. */
  delete(item: T): void {
    const at = this.#items.indexOf(item);
    if (at !== -1) this.#items.splice(at, 1);
  }

  keep(isKept: (item: T) => boolean): void {
    this.#items = this.#items.filter(isKept);
  }

  slice(from: number, to: number): T[] {
    return this.#sorted().slice(from, to);
  }

  /** How many items come before this one, which need not be in the list. */
  countBefore(item: T): number {
    const items = this.#sorted();
    return lowerBound(items.length, (at) => this.#compare(items[at]!, item) < 0);
  }

  #sorted(): readonly T[] {
    if (!this.#isSorted) this.#items.sort(this.#compare);
    this.#isSorted = true;
    return this.#items;
  }
}

/**
 * Binary search: the index of the first item of an ordered list of `length` items that is not before the one looked
 * for, or `length` when all are before it. `isBefore` must be true up to some index and false from there on.
 */
export function lowerBound(length: number, isBefore: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

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
