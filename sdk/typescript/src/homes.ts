/**
 * Which gateway of a cluster each operation lives at, as the answers to its checks name it. Later messages about the
 * operation name it, and the gateway that takes it need not ask all others. A gateway alone names none.
 */

/** Beyond that, those that were not used for longest are dropped; for them, gateways ask each other. */
const MAX_HOMES = 10_000;

export class Homes {
  /** By operation id; the least recently used one is first. */
  readonly #homes = new Map<string, string>();

  /** Remembers the home in an answer; '' if it names none. */
  learn(opId: string, home: string): void {
    if (home === '') return;
    this.#homes.delete(opId);
    this.#homes.set(opId, home);
    if (this.#homes.size <= MAX_HOMES) return;
    for (const oldest of this.#homes.keys()) return this.drop(oldest);
  }

  /** Undefined where it is not known. */
  of(opId: string): string | undefined {
    const home = this.#homes.get(opId);
    if (home !== undefined) this.learn(opId, home);
    return home;
  }

  /** The operation is over, and little is said of it from now on: it must not crowd out one that runs for long. */
  drop(opId: string): void {
    this.#homes.delete(opId);
  }
}
