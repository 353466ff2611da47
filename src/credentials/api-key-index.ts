import type { SecretDigest } from '../core/base/ids.ts';
import { Multimap } from '../core/base/lists.ts';
import type { Page } from '../core/base/page.ts';
import { LazySortedList } from '../core/base/sorted.ts';
import { type ApiKey, endMsOf } from '../core/identity/api-key.ts';

type Place = Pick<ApiKey, 'id' | 'createdAtMs'>;
/** By time of creation, which is the order in which `set` adds keys most cheaply. */
export const oldestFirst = (a: Place, b: Place): number =>
  a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** The keys of an org in their order, and the times at which they end, as far as they do. */
class OrgKeys {
  readonly order = new LazySortedList(oldestFirst);
  readonly #endsMs = new LazySortedList<number>((a, b) => a - b);

  countOf(ms: number): number {
    return this.order.size - this.#endsMs.countBefore(ms + 1);
  }

  add(place: Place, endMs: number): void {
    this.order.add(place);
    this.setEnd(Infinity, endMs);
  }

  setEnd(beforeMs: number, ms: number): void {
    if (beforeMs === ms) return;
    if (beforeMs !== Infinity) this.#endsMs.delete(beforeMs);
    if (ms !== Infinity) this.#endsMs.add(ms);
  }

  /** Takes those that are still there, of what it had before. */
  takeFrom({ order }: OrgKeys, keyOf: (id: string) => ApiKey | undefined): this {
    for (const place of order.slice(0, order.size)) {
      const key = keyOf(place.id);
      if (key !== undefined) this.add(place, endMsOf(key));
    }
    return this;
  }
}

/**
 * The API keys in memory: by id, by digest, and in the order of the list (newest first, then by id). It runs in the
 * thread that decides for everybody, so a call about one org must not visit each of its keys, or those of others.
 */
export class ApiKeyIndex {
  readonly #byId = new Map<string, ApiKey>();
  readonly #idByDigest = new Map<SecretDigest, string>();
  readonly #all = new LazySortedList(oldestFirst);
  readonly #ofOrg = new Map<string, OrgKeys>();
  /** The ids of what each subject made. */
  readonly #idsByCreator = new Multimap<string, string>();

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

  /** How many keys of the org have not ended by this time. */
  countOf(orgId: string, ms: number): number {
    return this.#ofOrg.get(orgId)?.countOf(ms) ?? 0;
  }

  createdBy(subject: string): ApiKey[] {
    return Array.from(this.#idsByCreator.of(subject), (id) => this.#byId.get(id)!);
  }

  all(): ApiKey[] {
    return Array.from(this.#byId.values());
  }

  set(key: ApiKey): void {
    const before = this.#byId.get(key.id);
    this.#byId.set(key.id, key);
    const ofOrg = key.orgId === null ? undefined : this.#keysOf(key.orgId);
    if (before === undefined) {
      const place: Place = { id: key.id, createdAtMs: key.createdAtMs }; // neither ever changes
      this.#all.add(place);
      ofOrg?.add(place, endMsOf(key));
      this.#idByDigest.set(key.digest, key.id);
      this.#idsByCreator.add(key.createdBy, key.id);
    } else {
      ofOrg?.setEnd(endMsOf(before), endMsOf(key));
    }
  }

  /** Removes every key for which `isGone` is true. */
  forget(isGone: (key: ApiKey) => boolean): void {
    for (const key of this.#byId.values()) {
      if (!isGone(key)) continue;
      this.#byId.delete(key.id);
      this.#idByDigest.delete(key.digest);
      this.#idsByCreator.delete(key.createdBy, key.id);
    }
    const keyOf = (id: string): ApiKey | undefined => this.#byId.get(id);
    this.#all.keep(({ id }) => keyOf(id) !== undefined);
    for (const [orgId, keys] of this.#ofOrg) {
      const left = new OrgKeys().takeFrom(keys, keyOf);
      if (left.order.size === 0) this.#ofOrg.delete(orgId);
      else this.#ofOrg.set(orgId, left);
    }
  }

  /**
   * A page of the keys of one org or, if that is null, of all. `cursor` is the id of the last key on the page before.
   * Undefined if it is not one of these.
   */
  page(perPage: number, cursor: string | undefined, orgId: string | null): Page<ApiKey> | undefined {
    const after = cursor === undefined ? undefined : this.#byId.get(cursor);
    if (cursor !== undefined && (after === undefined || (orgId !== null && after.orgId !== orgId))) return undefined;
    const order = orgId === null ? this.#all : this.#ofOrg.get(orgId)?.order;
    if (order === undefined) return { items: [], next: undefined };
    const end = after === undefined ? order.size : order.countBefore(after);
    const begin = Math.max(0, end - perPage);
    const items = order
      .slice(begin, end)
      .reverse()
      .map(({ id }) => this.#byId.get(id)!);
    return { items, next: begin > 0 ? items.at(-1)?.id : undefined };
  }

  #keysOf(orgId: string): OrgKeys {
    const known = this.#ofOrg.get(orgId);
    if (known !== undefined) return known;
    const keys = new OrgKeys();
    this.#ofOrg.set(orgId, keys);
    return keys;
  }
}
