/**
 * Loaded into a gateway under test with --import, and so into each of its threads: the wall clock is as many
 * milliseconds off as the file $CLOCK_OFFSET says, which is read ten times a second at most.
 */
import { readFileSync } from 'node:fs';

const { now } = Date;
let offsetMs = 0;
let readAtMs = -Infinity;
Date.now = () => {
  const steadyMs = performance.now();
  if (steadyMs - readAtMs > 100) {
    readAtMs = steadyMs;
    try {
      offsetMs = Number(readFileSync(process.env.CLOCK_OFFSET, 'utf8')) || 0;
    } catch {
      offsetMs = 0; // no file: the clock is right
    }
  }
  return now() + offsetMs;
};
