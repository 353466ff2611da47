import { randomBytes } from 'node:crypto';
import { type AuditEvent, lineageOfOrg } from '../core/audit/audit.ts';
import { redactText } from '../core/audit/redact-text.ts';
import type { SecretDigest } from '../core/base/ids.ts';
import { BAD_CURSOR, type Page, type PageRequest } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import {
  type ApiKey,
  formatApiKey,
  hintOf,
  isKeyId,
  isLongOver,
  isUsable,
  KEY_ENTROPY_BYTES,
  keyIdOf,
  keySubject,
  LISTED_WHEN_OVER_MS,
} from '../core/identity/api-key.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';
import { ApiKeyIndex, oldestFirst } from './api-key-index.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import { digestOf } from './secret-token.ts';

/**
 * Changes that the store of API keys does not have yet. Changes that cannot be written now are written by a later call.
 */
class UnsavedKeyChanges {
  readonly #store: Pick<ApiKeyStore, 'revoke' | 'touch'>;
  readonly #uses = new Map<string, number>();
  /** In force here, but neither in other gateways nor after a restart. */
  readonly #revocations = new Map<string, number>();

  constructor(store: Pick<ApiKeyStore, 'revoke' | 'touch'>) {
    this.#store = store;
  }

  noteUse(id: string, lastUsedAtMs: number): void {
    this.#uses.set(id, lastUsedAtMs);
  }

  noteRevocation(id: string, revokedAtMs: number): void {
    this.#revocations.set(id, revokedAtMs);
  }

  hasRevocationOf(id: string): boolean {
    return this.#revocations.has(id);
  }

  /** Succeeds when there is nothing to do. */
  async saveRevocation(id: string): Promise<Result<void, Fault>> {
    const revokedAtMs = this.#revocations.get(id);
    if (revokedAtMs === undefined) return ok(undefined);
    const saved = await this.#store.revoke(id, revokedAtMs);
    if (saved.ok) this.#revocations.delete(id);
    return saved;
  }

  async saveRevocations(): Promise<Result<void, Fault>> {
    for (const id of [...this.#revocations.keys()]) {
      const saved = await this.saveRevocation(id);
      if (!saved.ok) return saved;
    }
    return ok(undefined);
  }

  async saveUses(): Promise<Result<void, Fault>> {
    const uses = Array.from(this.#uses, ([id, lastUsedAtMs]) => ({ id, lastUsedAtMs }));
    if (uses.length === 0) return ok(undefined);
    const saved = await this.#store.touch(uses);
    // Not those of a key that was used again meanwhile.
    if (saved.ok)
      for (const { id, lastUsedAtMs } of uses) if (this.#uses.get(id) === lastUsedAtMs) this.#uses.delete(id);
    return saved;
  }
}

/**
 * Lets concurrent calls share one run of `work`. Each gets the result of a run that began after it asked. Runs do
 * not overlap, and between the beginnings of two there is at least the `pause`.
 */
function coalesce<T>(pause: () => Promise<unknown>, work: () => Promise<T>): () => Promise<T> {
  let next: Promise<T> | undefined;
  let free: Promise<unknown> = Promise.resolve();
  return () =>
    (next ??= free.then(() => {
      next = undefined;
      const run = work();
      free = Promise.allSettled([run, pause()]);
      return run;
    }));
}

/** `key` exists nowhere else: show it once and forget it. */
export type CreatedApiKey = { readonly key: string; readonly record: ApiKey };

export type NewApiKey = Pick<ApiKey, 'name' | 'scopes' | 'orgId' | 'createdBy' | 'expiresAtMs'>;

export type ApiKeysDeps = {
  readonly store: ApiKeyStore;
  readonly audit: AuditLog;
  readonly clock: Clock;
  /**
   * Usable keys of one org at once. Ended keys are kept for as long as they are listed, so they are limited, too: see
   * `mostKeysOf`. Keys bound to no org are the operator's, and not counted.
   */
  readonly maxOrgKeys: number;
  /**
   * The pause between two looks for keys that other gateways have just made. Unset: no other gateway shares the store.
   */
  readonly pauseBetweenLooks?: (() => Promise<unknown>) | undefined;
};

const DAY_MS = 24 * 60 * 60_000;

const USE_RECORDED_EVERY_MS = 60_000;
/**
 * Keys that ended long ago are dropped once there are this many keys, or twice as many as the last time left, if that
 * is more.
 */
const MIN_KEYS_TO_FORGET = 1000;
/**
 * How many keys an org may have in the list, with those that have ended: by making keys and revoking them it would fill
 * the memory that all share.
 */
const mostKeysOf = (maxOrgKeys: number): number => Math.max(1000, 4 * maxOrgKeys);
/** Longer than a write to a shared store may take to become visible. */
const REFRESH_OVERLAP_MS = 60_000;

/**
 * The API keys, in memory and in step with the store; each change is recorded first (docs/spec.md, API keys). All keys
 * but those that are long over are held in memory by the digest of the key, so finding one takes no I/O and a time that
 * tells nothing about the secret. The store keeps keys for longer, and those that the gateway itself made forever, so
 * that none of them comes back.
 */
export class ApiKeys {
  readonly #deps: ApiKeysDeps;
  readonly #index = new ApiKeyIndex();
  readonly #unsaved: UnsavedKeyChanges;
  readonly #listeners: ((subject: string) => void)[] = [];
  #loadedAtMs = 0;
  #pruneAtSize = MIN_KEYS_TO_FORGET;
  /** Keys of each org that are being added: they count already. */
  readonly #adding = new Map<string, number>();
  /** Revocations under way: a second request meanwhile waits for the first, so that each is recorded once. */
  readonly #revoking = new Map<string, Promise<Result<void, Fault>>>();
  /** However many unknown keys are presented, the store is asked once for all of them, and not too often. */
  readonly #look: () => Promise<Result<void, Fault>>;

  private constructor(deps: ApiKeysDeps) {
    this.#deps = deps;
    this.#unsaved = new UnsavedKeyChanges(deps.store);
    this.#look =
      deps.pauseBetweenLooks === undefined
        ? async () => ok(undefined)
        : coalesce(deps.pauseBetweenLooks, () => this.#loadChanges());
  }

  /** Loads every key that is not long over. */
  static async open(deps: ApiKeysDeps): Promise<Result<ApiKeys, Fault>> {
    const keys = new ApiKeys(deps);
    const loaded = await keys.#load((store) => store.notLongOver(keys.#longAgoMs()));
    return loaded.ok ? ok(keys) : loaded;
  }

  /** Called with `key:<id>` in the same turn in which a key stops being accepted before its time. */
  onRevoked(listener: (subject: string) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Takes over what other gateways wrote to a shared store since the last time. Call it on notice or every few seconds.
   */
  async refresh(): Promise<Result<void, Fault>> {
    const loaded = await this.#loadChanges();
    // last, because a store that refuses writes can still be read; `flush` reports the failure
    await this.#unsaved.saveRevocations();
    return loaded;
  }

  /**
   * Call it before `authenticate` or `authenticateId`, with the id of the key: an unknown one is looked up in a shared
   * store, because another gateway may have created it a moment ago. Fault: `store_unreachable`, because then it cannot
   * be known.
   */
  async lookFor(id: string | undefined): Promise<Result<void, Fault>> {
    return id === undefined || this.#index.byId(id) !== undefined ? ok(undefined) : this.#look();
  }

  /** The usable key of this digest; its use is noted. */
  authenticate(digest: SecretDigest): ApiKey | undefined {
    return this.#usable(this.#index.byDigest(digest));
  }

  /** The usable key of this id, for a token that was minted from it; its use is noted. */
  authenticateId(id: string): ApiKey | undefined {
    return this.#usable(this.#index.byId(id));
  }

  /** Whether it is known that the key of this id has ended. */
  hasEnded(id: string): boolean {
    const key = this.#index.byId(id);
    return key !== undefined && !isUsable(key, this.#deps.clock.nowMs());
  }

  /** Whether the key of this subject was revoked; one that has expired was not. Fault: as `lookFor`. */
  async isRevoked(subject: string): Promise<Result<boolean, Fault>> {
    const id = keyIdOf(subject);
    const looked = await this.lookFor(id);
    if (!looked.ok) return looked;
    const key = this.#index.byId(id ?? '');
    return ok(key === undefined || key.revokedAtMs !== null);
  }

  /** The key of this id or digest, in memory or else in the store. */
  async find(
    by: { readonly id: string } | { readonly digest: SecretDigest },
  ): Promise<Result<ApiKey | undefined, Fault>> {
    const known = 'id' in by ? this.#index.byId(by.id) : this.#index.byDigest(by.digest);
    if (known !== undefined || ('id' in by && !isKeyId(by.id))) return ok(known);
    const found = await this.#deps.store.find(by);
    // another gateway may have made it since the last refresh
    if (found.ok && found.value !== undefined) this.#adopt(found.value);
    return found;
  }

  /** Newest first, those of one org or of all. Faults: `invalid_argument` for a cursor that is none. */
  async page({ perPage, cursor }: PageRequest, orgId: string | null): Promise<Result<Page<ApiKey>, Fault>> {
    // The list shows what other gateways have just made and revoked, too. While the store cannot be reached, what is
    // known here must do.
    const looked = await (cursor === undefined ? this.#look() : this.lookFor(cursor));
    const page = this.#index.page(perPage, cursor, orgId);
    if (page === undefined) return BAD_CURSOR;
    // A store that did not answer is not asked again: each list would then hold a connection that a login needs, until
    // its time-out.
    const uses = looked.ok ? await this.#deps.store.lastUses(page.items.map(({ id }) => id)) : looked;
    const usedElsewhere = new Map(uses.ok ? uses.value.map(({ id, lastUsedAtMs }) => [id, lastUsedAtMs]) : []);
    return ok({
      ...page,
      items: page.items.map((key) => ({ ...key, lastUsedAtMs: later(key.lastUsedAtMs, usedElsewhere.get(key.id)) })),
    });
  }

  /** The time, by the clock that sets the times of keys. */
  get nowMs(): number {
    return this.#deps.clock.nowMs();
  }

  /** Keys in memory that the subject made. */
  createdBy(subject: string): readonly ApiKey[] {
    return this.#index.createdBy(subject);
  }

  /** Takes over what other gateways have just made and revoked. Faults: those of the store. */
  lookAround(): Promise<Result<void, Fault>> {
    return this.#look();
  }

  /** All keys in memory. */
  all(): readonly ApiKey[] {
    return this.#index.all();
  }

  /** A key and its record, which is nowhere yet. The key is a random one unless its `text` is given. */
  make(given: NewApiKey, text?: string): CreatedApiKey {
    const { id, key } = formatApiKey(randomBytes(KEY_ENTROPY_BYTES));
    const chosen = text ?? key;
    return {
      key: chosen,
      record: {
        ...given,
        id,
        digest: digestOf(chosen),
        hint: hintOf(chosen),
        createdAtMs: this.#deps.clock.nowMs(),
        revokedAtMs: null,
        lastUsedAtMs: null,
      },
    };
  }

  /**
   * Puts a key in force. `exists`: nothing was changed, because the store has one of this id or digest. Faults:
   * `conflict` when its org has as many keys as it may, counting those that are being added, and those of the store and
   * the audit log.
   */
  async add(record: ApiKey): Promise<Result<'inserted' | 'exists', Fault>> {
    const { orgId } = record;
    if (orgId === null) return this.#insert(record, 'insert');
    const adding = this.#adding.get(orgId) ?? 0;
    const refused = this.#refuseOneMore(orgId, adding);
    if (refused !== undefined) return refused;
    this.#adding.set(orgId, adding + 1);
    try {
      return await this.#insert(record, 'insert');
    } finally {
      const left = (this.#adding.get(orgId) ?? 1) - 1;
      if (left === 0) this.#adding.delete(orgId);
      else this.#adding.set(orgId, left);
    }
  }

  #refuseOneMore(orgId: string, adding: number): Result<never, Fault> | undefined {
    const { clock, maxOrgKeys } = this.#deps;
    const most = mostKeysOf(maxOrgKeys);
    const problem =
      this.#index.countOf(orgId, clock.nowMs()) + adding >= maxOrgKeys
        ? `has reached its limit of ${maxOrgKeys} valid API keys; revoke some`
        : this.#index.countOf(orgId, this.#longAgoMs()) + adding >= most
          ? `has reached its limit of ${most} API keys, including those that ended in the last ${LISTED_WHEN_OVER_MS / DAY_MS} days; wait`
          : undefined;
    return problem === undefined
      ? undefined
      : fail({ kind: 'conflict', detail: `org ${orgId} ${problem}, or have SVC_MAX_ORG_API_KEYS raised` });
  }

  /** As `add`, but `exists` also when the store holds any key at all. */
  addFirst(record: ApiKey): Promise<Result<'inserted' | 'exists', Fault>> {
    return this.#insert(record, 'insertFirst');
  }

  /** Revoking twice is no error. Faults: those of the store and the audit log. */
  async revoke(key: ApiKey, actor: string): Promise<Result<void, Fault>> {
    if (key.revokedAtMs !== null) return this.#unsaved.saveRevocation(key.id);
    const underWay = this.#revoking.get(key.id);
    if (underWay !== undefined) return underWay;
    const revoking = this.#revoke(key, actor).finally(() => this.#revoking.delete(key.id));
    this.#revoking.set(key.id, revoking);
    return revoking;
  }

  /**
   * Writes revocations that the store could not take before, and times of last use. The rest is written by the next
   * call.
   */
  async flush(): Promise<Result<void, Fault>> {
    const revoked = await this.#unsaved.saveRevocations();
    const used = await this.#unsaved.saveUses();
    return revoked.ok ? used : revoked;
  }

  /** When any key was last made or used; undefined when there is none. */
  get lastSeenAtMs(): number | undefined {
    const timesMs = this.#index.all().map(({ createdAtMs, lastUsedAtMs }) => lastUsedAtMs ?? createdAtMs);
    return timesMs.length === 0 ? undefined : timesMs.reduce((latest, ms) => Math.max(latest, ms));
  }

  get size(): number {
    return this.#index.size;
  }

  async #loadChanges(): Promise<Result<void, Fault>> {
    // Twice, because after it was set back this clock runs at half the speed of the store's.
    const passedMs = 2 * (this.#deps.clock.nowMs() - this.#loadedAtMs);
    if (passedMs < 0) return this.#load((store) => store.notLongOver(this.#longAgoMs())); // it has followed
    return this.#load((store) => store.changedWithin(passedMs + REFRESH_OVERLAP_MS));
  }

  async #load(read: (store: ApiKeyStore) => ReturnType<ApiKeyStore['all']>): Promise<Result<void, Fault>> {
    const startedMs = this.#deps.clock.nowMs();
    const stored = await read(this.#deps.store);
    if (!stored.ok) return stored;
    for (const key of stored.value.toSorted(oldestFirst)) this.#adopt(key);
    this.#loadedAtMs = startedMs;
    return ok(undefined);
  }

  async #insert(record: ApiKey, how: 'insert' | 'insertFirst'): Promise<Result<'inserted' | 'exists', Fault>> {
    const recorded = await this.#record('ApiKeyCreated', record, record.createdBy);
    if (!recorded.ok) return recorded;
    const inserted = await this.#deps.store[how](record);
    if (inserted.ok && inserted.value === 'inserted') this.#adopt(record);
    return inserted;
  }

  #longAgoMs(): number {
    return this.#deps.clock.nowMs() - LISTED_WHEN_OVER_MS;
  }

  async #revoke(key: ApiKey, actor: string): Promise<Result<void, Fault>> {
    const recorded = await this.#record('ApiKeyRevoked', key, actor);
    if (!recorded.ok) return recorded;
    const revokedAtMs = this.#deps.clock.nowMs();
    // In memory first: even if the store cannot be reached now, the key is dead in this process from here on.
    this.#adopt({ ...(this.#index.byId(key.id) ?? key), revokedAtMs });
    this.#unsaved.noteRevocation(key.id, revokedAtMs);
    return this.#unsaved.saveRevocation(key.id);
  }

  #record(
    eventType: AuditEvent,
    { id, name, scopes, orgId, expiresAtMs }: ApiKey,
    actor: string,
  ): Promise<Result<void, Fault>> {
    return this.#deps.audit.record({
      eventType,
      lineage: lineageOfOrg(orgId),
      actor,
      payload: {
        key_id: id,
        name: redactText(name),
        scopes,
        expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
      },
    });
  }

  /** Adds a row to the index. A revocation is never undone, even if the store does not have it yet. */
  #adopt(row: ApiKey): void {
    const before = this.#index.byId(row.id);
    if (before === undefined && isLongOver(row, this.#longAgoMs())) return;
    if (this.#index.size >= this.#pruneAtSize) this.#dropLongOver();
    const revokedAtMs = before?.revokedAtMs ?? row.revokedAtMs;
    this.#index.set({ ...row, revokedAtMs, lastUsedAtMs: later(row.lastUsedAtMs, before?.lastUsedAtMs) });
    if (before !== undefined && before.revokedAtMs === null && revokedAtMs !== null) {
      for (const listener of this.#listeners) listener(keySubject(row.id));
    }
  }

  /** Leaves the keys whose revocation the store does not know yet. */
  #dropLongOver(): void {
    const longAgoMs = this.#longAgoMs();
    this.#index.forget((key) => isLongOver(key, longAgoMs) && !this.#unsaved.hasRevocationOf(key.id));
    this.#pruneAtSize = Math.max(MIN_KEYS_TO_FORGET, 2 * this.#index.size);
  }

  #usable(key: ApiKey | undefined): ApiKey | undefined {
    const nowMs = this.#deps.clock.nowMs();
    if (key === undefined || !isUsable(key, nowMs)) return undefined;
    if (key.lastUsedAtMs !== null && nowMs - key.lastUsedAtMs < USE_RECORDED_EVERY_MS) return key;
    this.#unsaved.noteUse(key.id, nowMs);
    const used = { ...key, lastUsedAtMs: nowMs };
    this.#index.set(used);
    return used;
  }
}

const later = (ms: number | null, otherMs: number | null | undefined): number | null =>
  Math.max(ms ?? 0, otherMs ?? 0) || null;
