/** Several values under one key, each once. A key is there as long as it has values. */
export class Multimap<K, V> {
  readonly #sets = new Map<K, Set<V>>();

  /** In the order in which they were added. */
  of(key: K): ReadonlySet<V> {
    return this.#sets.get(key) ?? NONE;
  }

  has(key: K): boolean {
    return this.#sets.has(key);
  }

  keys(): Iterable<K> {
    return this.#sets.keys();
  }

  add(key: K, value: V): void {
    const values = this.#sets.get(key);
    if (values === undefined) this.#sets.set(key, new Set([value]));
    else values.add(value);
  }

  delete(key: K, value: V): void {
    const values = this.#sets.get(key);
    values?.delete(value);
    if (values?.size === 0) this.#sets.delete(key);
  }

  deleteAll(key: K): void {
    this.#sets.delete(key);
  }
}

const NONE: ReadonlySet<never> = new Set<never>();
