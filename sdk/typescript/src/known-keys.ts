/** Finds misspelt keys: in JavaScript nobody else does, and a check without its `resource` would be another check. */

/** Every key of a type, so that none is forgotten and none is made up. */
export type KeysOf<T> = { readonly [K in keyof T]-?: true };

/** A key of a megabyte is neither compared nor quoted as a whole. */
const MAX_SHOWN = 40;

/** Throws a TypeError that names the key nearest to one that is not known. */
export function requireKnownKeys(given: unknown, what: string, known: Readonly<Record<string, true>>): void {
  if (typeof given !== 'object' || given === null) throw new TypeError(`${what} must be an object`);
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(known, key)) continue;
    const keys = Object.keys(known);
    const nearest = nearestTo(key, keys);
    throw new TypeError(
      `${what} has an unknown key '${key.slice(0, MAX_SHOWN)}'${nearest === undefined ? `; it takes ${keys.join(', ')}` : `: did you mean '${nearest}'?`}`,
    );
  }
}

/** Undefined where none is near enough to be meant. */
function nearestTo(key: string, candidates: readonly string[]): string | undefined {
  const wanted = plain(key);
  const [nearest] = candidates
    .map((candidate) => ({ candidate, distance: distance(wanted, plain(candidate)) }))
    .sort((one, other) => one.distance - other.distance);
  return nearest !== undefined && nearest.distance <= Math.max(1, wanted.length / 3) ? nearest.candidate : undefined;
}

/** `trace_id` and `traceID` mean `traceId`. */
const plain = (key: string): string => key.slice(0, MAX_SHOWN).replaceAll(/[_-]/g, '').toLowerCase();

/** How many letters have to be changed, added or left out (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const changed = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(changed, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
