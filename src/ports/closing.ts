/** The rest of the time that a stop has, in milliseconds, but at least `leastMs`. */
export type Grace = { leftMs(leastMs?: number): number };

export type Close = (grace: Grace) => unknown;

/** Closes what was opened, the last first. `name`: what a stop waits for meanwhile, in the words of its log. */
export type Closing = { add(name: string, close: Close): void };
