/**
 * How many of a limited number of places each caller has taken. Callers are orgs, or the addresses that people sign in
 * from. The quota of each is half of the places, so that some are always left for others. The caller null, an
 * operator's credential that is bound to no org, is not limited. The quota does not depend on what others have taken,
 * so it reveals nothing about them.
 */
export class CallerQuota {
  readonly #quota: number;
  readonly #taken = new Map<string, number>();

  constructor(places: number) {
    this.#quota = Math.ceil(places / 2);
  }

  /** False when the caller has used up its quota. A place that was acquired must be released exactly once. */
  tryAcquire(caller: string | null): boolean {
    if (caller === null) return true;
    const taken = this.#taken.get(caller) ?? 0;
    if (taken >= this.#quota) return false;
    this.#taken.set(caller, taken + 1);
    return true;
  }

  /** Takes a place that must not be refused, even beyond the quota. It must be released like any other. */
  acquireAnyway(caller: string | null): void {
    if (caller !== null) this.#taken.set(caller, (this.#taken.get(caller) ?? 0) + 1);
  }

  release(caller: string | null): void {
    if (caller === null) return;
    const taken = this.#taken.get(caller) ?? 0;
    if (taken > 1) this.#taken.set(caller, taken - 1);
    else this.#taken.delete(caller);
  }
}
