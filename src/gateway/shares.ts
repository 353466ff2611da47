/**
 * A fair share of a limited number of places. Callers are orgs, or the addresses that people sign in from. None gets more than
 * half of the places, so that there are always some for others. The caller null, a credential bound to no org and so the
 * operator's, has no such limit. The limit does not depend on what others have taken, so it tells nothing about them.
 */
export class Shares {
  readonly #share: number;
  readonly #taken = new Map<string, number>();

  constructor(places: number) { this.#share = Math.ceil(places / 2); }

  /** False when the caller has its share already. A place that was taken must be given back exactly once. */
  take(caller: string | null): boolean {
    if (caller === null) return true;
    const taken = this.#taken.get(caller) ?? 0;
    if (taken >= this.#share) return false;
    this.#taken.set(caller, taken + 1);
    return true;
  }

  /** Takes a place that must not be refused, even beyond the share. It must be given back like any other. */
  add(caller: string | null): void {
    if (caller !== null) this.#taken.set(caller, (this.#taken.get(caller) ?? 0) + 1);
  }

  giveBack(caller: string | null): void {
    if (caller === null) return;
    const taken = this.#taken.get(caller) ?? 0;
    if (taken > 1) this.#taken.set(caller, taken - 1);
    else this.#taken.delete(caller);
  }
}
