/**
 * Measures until it is within the limit once, twenty times at most, and answers the shortest: a machine that is busy
 * with other things delays some of them, a defect all.
 */
export async function fastestMs(limitMs: number, measure: () => Promise<number>): Promise<number> {
  let shortestMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20 && shortestMs >= limitMs; round += 1)
    shortestMs = Math.min(shortestMs, await measure());
  return shortestMs;
}
