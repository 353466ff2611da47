import { lowerBound } from './lower-bound.ts';

/** A list that is put in order when somebody looks, because most of what is added belongs at its end. */
export class LateSorted<T> {
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

  /** One of those that are equal to it. */
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

  /** How many come before it, whether it is one of them or not. */
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
