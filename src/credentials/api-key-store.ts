import type { SecretDigest } from '../core/base/ids.ts';
import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { ApiKey } from '../core/identity/api-key.ts';

/** When a key was last used, in milliseconds since the Unix epoch. */
export type KeyUse = { readonly id: string; readonly lastUsedAtMs: number };

/**
 * The store of API keys: the embedded store, or the database that several gateways share. A resolved write is durable.
 * Every call may answer `store_unreachable`.
 */
export type ApiKeyStore = {
  /** Every key, also revoked and expired ones, in any order. */
  all(): Promise<Result<readonly ApiKey[], Fault>>;
  /** All keys but those that `isLongOver` by then. */
  notLongOver(beforeMs: number): Promise<Result<readonly ApiKey[], Fault>>;
  /**
   * Deletes some of the keys that ended more than `forMs` ago, both by `nowMs` and by the store's own clock, but never
   * the one with the digest `kept`. Answers the `after` to go on with; undefined at the end.
   */
  deleteLongOver(asked: {
    readonly nowMs: number;
    readonly forMs: number;
    readonly kept: SecretDigest | undefined;
    readonly after: string;
  }): Promise<Result<string | undefined, Fault>>;
  find(by: { readonly id: string } | { readonly digest: SecretDigest }): Promise<Result<ApiKey | undefined, Fault>>;
  /**
   * The keys that were created or revoked in the last `ms` by the store's own clock, and perhaps others. For gateways
   * that share a store, whose clocks may differ. Each asks for a little more than has passed, because some writes are
   * slow to commit.
   */
  changedWithin(ms: number): Promise<Result<readonly ApiKey[], Fault>>;
  /** `exists`: there is a key of this id or digest already, and nothing was written. */
  insert(key: ApiKey): Promise<Result<'inserted' | 'exists', Fault>>;
  /**
   * As `insert`, but `exists` also when the store holds any key at all: two gateways that start at once mint one first
   * key.
   */
  insertFirst(key: ApiKey): Promise<Result<'inserted' | 'exists', Fault>>;
  /** Sets the time of revocation unless it is set; an unknown id is ignored. */
  revoke(id: string, revokedAtMs: number): Promise<Result<void, Fault>>;
  /** Sets each time of last use, unless a later one is recorded. Losing one does no harm. */
  touch(uses: readonly KeyUse[]): Promise<Result<void, Fault>>;
  /** When these keys were last used, for those that other gateways may have used. */
  lastUses(ids: readonly string[]): Promise<Result<readonly KeyUse[], Fault>>;
};
