import { isLongOver, isUsable, type ApiKey } from '../core/api-key.ts';
import type { Page } from '../core/commands.ts';
import type { SecretDigest } from '../core/ids.ts';
import { lowerBound } from '../core/lower-bound.ts';
import { Multimap } from '../core/multimap.ts';

/** The API keys in memory: by id, by digest, and in the order of the list (newest first, then by id). */
export class ApiKeyIndex {
  readonly #byId = new Map<string, ApiKey>();
  readonly #idByDigest = new Map<SecretDigest, string>();
  readonly #idsByOrg = new Multimap<string, string>();
  /** Oldest first, so that a new key is appended. The id and the time of creation never change, so an update leaves it alone. */
  #order: { readonly id: string; readonly createdAtMs: number }[] = [];
  #sorted = true;

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
      const last = this.#order.at(-1);
      this.#order.push({ id: key.id, createdAtMs: key.createdAtMs });
      this.#idByDigest.set(key.digest, key.id);
      if (key.orgId !== null) this.#idsByOrg.add(key.orgId, key.id);
      this.#sorted &&= last === undefined || oldestFirst(last, key) < 0;
    }
    this.#byId.set(key.id, key);
  }

  /** Removes every key for which `isGone` is true. */
  forget(isGone: (key: ApiKey) => boolean): void {
    for (const key of this.#byId.values()) {
      if (!isGone(key)) continue;
      this.#byId.delete(key.id);
      this.#idByDigest.delete(key.digest);
      if (key.orgId !== null) this.#idsByOrg.delete(key.orgId, key.id);
    }
    this.#order = this.#order.filter(({ id }) => this.#byId.has(id));
  }

  /** `cursor` is the id of the last key on the page before. Undefined when it is not one the reader was shown. */
  page(perPage: number, cursor: string | undefined, visible: (key: ApiKey) => boolean): Page<ApiKey> | undefined {
    if (!this.#sorted) this.#order.sort(oldestFirst);
    this.#sorted = true;
    const after = cursor === undefined ? undefined : this.#byId.get(cursor);
    if (cursor !== undefined && (after === undefined || !visible(after))) return undefined;
    const items: ApiKey[] = [];
    for (let at = (after === undefined ? this.#order.length : this.#placeOf(after)) - 1; at >= 0; at -= 1) {
      const key = this.#byId.get(this.#order[at]?.id ?? '');
      if (key === undefined || !visible(key)) continue;
      if (items.length === perPage) return { items, next: items.at(-1)?.id };
      items.push(key);
    }
    return { items, next: undefined };
  }

  #countOf(orgId: string, counts: (key: ApiKey) => boolean): number {
    let count = 0;
    for (const id of this.#idsByOrg.of(orgId)) if (counts(this.#byId.get(id)!)) count += 1;
    return count;
  }

  #placeOf(key: ApiKey): number {
    return lowerBound(this.#order.length, (at) => oldestFirst(this.#order[at]!, key) < 0);
  }
}

type Place = { readonly id: string; readonly createdAtMs: number };
/** By time of creation, which is the order in which `set` adds keys most cheaply. */
export const oldestFirst = (a: Place, b: Place): number => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
