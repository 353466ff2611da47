/**
 * Places that all orgs share, of which no one org gets more than half: however many its credentials ask for, others find
 * some. A credential bound to no org is the operator's, and takes what there is. The share does not depend on what others
 * have taken, so nobody learns that from it.
 */
export class OrgShares {
  readonly #share: number;
  readonly #taken = new Map<string, number>();

  constructor(places: number) { this.#share = Math.ceil(places / 2); }

  /** False when the org has its share. What was taken is given back once. */
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
