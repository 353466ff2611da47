/**
 * Places that all orgs share. No org gets more than half of them, so that others always find some. A credential bound to no
 * org is the operator's and has no such limit. The limit does not depend on what other orgs have taken, so it tells nothing
 * about them.
 */
export class OrgShares {
  readonly #share: number;
  readonly #taken = new Map<string, number>();

  constructor(places: number) { this.#share = Math.ceil(places / 2); }

  /** False when the org has its share already. A place that was taken must be given back exactly once. */
  take(orgId: string | null): boolean {
    if (orgId === null) return true;
    const taken = this.#taken.get(orgId) ?? 0;
    if (taken >= this.#share) return false;
    this.#taken.set(orgId, taken + 1);
    return true;
  }

  giveBack(orgId: string | null): void {
    if (orgId === null) return;
    const taken = this.#taken.get(orgId) ?? 0;
    if (taken > 1) this.#taken.set(orgId, taken - 1);
    else this.#taken.delete(orgId);
  }
}
