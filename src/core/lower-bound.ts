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
