/**
 * The first index of an ordered list of `length` items that is not before what is looked for, by binary search; `length`
 * where all are before it. `isBefore` is true for the items up to some index and false for all after.
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
