import { isLongOver, isUsable, type ApiKey } from '../core/api-key.ts';
import type { Page } from '../core/commands.ts';
import type { SecretDigest } from '../core/ids.ts';
import { lowerBound } from '../core/lower-bound.ts';

/** The API keys in memory: by id, by digest, and in the order of the list (newest first, then by id), of all and of each org. */
export class ApiKeyIndex {
  readonly #byId = new Map<string, ApiKey>();
  readonly #idByDigest = new Map<SecretDigest, string>();
  readonly #all = new KeyOrder();
  /** An org with few keys must not look through those of all others, time and again, in the thread that decides for everybody. */
  readonly #ofOrg = new Map<string, KeyOrder>();

  get size(): number {
    return this.#byId.size;
  }

  byId(id: string): ApiKey | undefined {
    return this.#byId.get(id);
  }

  byDigest(digest: SecretDigest): ApiKey | undefined {
    const id = this.#idByDigest.get(digest);
    return id === undefined ? undefined : this.#byId.get(id);
  }

  /** How many keys of the org are usable. */
  usableOf(orgId: string, nowMs: number): number { return this.#countOf(orgId, (key) => isUsable(key, nowMs)); }

  /** How many keys of the org are usable, or ended after this time. */
  usableOrEndedAfter(orgId: string, afterMs: number): number { return this.#countOf(orgId, (key) => !isLongOver(key, afterMs)); }

  all(): ApiKey[] {
    return Array.from(this.#byId.values());
  }

  set(key: ApiKey): void {
    if (!this.#byId.has(key.id)) {
      this.#idByDigest.set(key.digest, key.id);
      const place = { id: key.id, createdAtMs: key.createdAtMs };
      this.#all.add(place);
      if (key.orgId !== null) this.#orderOf(key.orgId).add(place);
    }
    this.#byId.set(key.id, key);
  }

  /** Removes every key for which `isGone` is true. */
  forget(isGone: (key: ApiKey) => boolean): void {
    for (const key of this.#byId.values()) {
      if (!isGone(key)) continue;
      this.#byId.delete(key.id);
      this.#idByDigest.delete(key.digest);
    }
    const isKept = ({ id }: Place): boolean => this.#byId.has(id);
    this.#all.keep(isKept);
    for (const [orgId, order] of this.#ofOrg) if (order.keep(isKept) === 0) this.#ofOrg.delete(orgId);
  }

  /** Of one org or, where that is null, of all. `cursor` is the id of the last key on the page before. Undefined when it is not one of these. */
  page(perPage: number, cursor: string | undefined, orgId: string | null): Page<ApiKey> | undefined {
    const after = cursor === undefined ? undefined : this.#byId.get(cursor);
    if (cursor !== undefined && (after === undefined || (orgId !== null && after.orgId !== orgId))) return undefined;
    const order = orgId === null ? this.#all : this.#ofOrg.get(orgId);
    // One more than asked for shows that there is a next page.
    const items = (order?.before(after, perPage + 1) ?? []).map(({ id }) => this.#byId.get(id)!);
    return items.length > perPage ? { items: items.slice(0, perPage), next: items[perPage - 1]?.id } : { items, next: undefined };
  }

  #orderOf(orgId: string): KeyOrder {
    const known = this.#ofOrg.get(orgId);
    if (known !== undefined) return known;
    const order = new KeyOrder();
    this.#ofOrg.set(orgId, order);
    return order;
  }

  #countOf(orgId: string, counts: (key: ApiKey) => boolean): number {
    return this.#ofOrg.get(orgId)?.count(({ id }) => counts(this.#byId.get(id)!)) ?? 0;
  }
}

type Place = { readonly id: string; readonly createdAtMs: number };
/** By time of creation, which is the order in which `set` adds keys most cheaply. */
export const oldestFirst = (a: Place, b: Place): number => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

class KeyOrder {
  /** Oldest first, so that a new key is appended. The id and the time of creation never change, so an update leaves it alone. */
  #places: Place[] = [];
  #isSorted = true;

  add(place: Place): void {
    const last = this.#places.at(-1);
    this.#isSorted &&= last === undefined || oldestFirst(last, place) < 0;
    this.#places.push(place);
  }

  /** Returns how many are left. */
  keep(isKept: (place: Place) => boolean): number {
    this.#places = this.#places.filter(isKept);
    return this.#places.length;
  }

  count(counts: (place: Place) => boolean): number {
    let count = 0;
    for (const place of this.#places) if (counts(place)) count += 1;
    return count;
  }

  /** The newest first, of those that come before this one, or of all. */
  before(place: Place | undefined, count: number): readonly Place[] {
    if (!this.#isSorted) this.#places.sort(oldestFirst);
    this.#isSorted = true;
    const end = place === undefined ? this.#places.length : lowerBound(this.#places.length, (at) => oldestFirst(this.#places[at]!, place) < 0);
    return this.#places.slice(Math.max(0, end - count), end).reverse();
  }
}
