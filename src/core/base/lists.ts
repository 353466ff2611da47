/**
 * Removes the first entry of a map: the oldest, or the least recently used where each use moves an entry to the end.
 * False where there is none.
 */
export function dropFirst<K>(map: Map<K, unknown>): boolean {
  for (const key of map.keys()) return map.delete(key);
  return false;
}

/** Adds the item to the list of this key, which begins with it where there is none. */
export function append<K, V>(lists: Map<K, V[]>, key: K, item: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

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
