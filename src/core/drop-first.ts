/**
 * Removes the first entry of a map: the oldest, or the least recently used where each use moves an entry to the end.
 * False where there is none.
 */
export function dropFirst<K>(map: Map<K, unknown>): boolean {
  for (const key of map.keys()) return map.delete(key);
  return false;
}
