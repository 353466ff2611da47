/** The first API key of a gateway (docs/spec.md, Names and defaults). */

import type { SecretDigest } from '../core/base/ids.ts';
import { ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import {
  type ApiKey,
  DELETED_WHEN_OVER_MS,
  ENVIRONMENT_CREATOR,
  FIRST_KEY_CREATOR,
  isUsable,
} from '../core/identity/api-key.ts';
import type { Clock } from '../ports/ports.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from './api-keys.ts';

export type ApiKeyDeletionDeps = {
  readonly store: Pick<ApiKeyStore, 'deleteLongOver'>;
  readonly clock: Clock;
  /**
   * The digest of the key that the operator has set. It is not deleted: once forgotten, it would be taken for a new key
   * and work again.
   */
  readonly kept: SecretDigest | undefined;
};

/** The pause between two passes over the store. */
const PAUSE_MS = 60 * 60_000;

/** Deletes the API keys that ended long ago from the store, in small steps. The audit log keeps what they were. */
export class ApiKeyDeletion {
  readonly #deps: ApiKeyDeletionDeps;
  /** How far the pass has come; undefined between two passes. */
  #upTo: string | undefined;
  #throughAtMs = -Infinity;

  constructor(deps: ApiKeyDeletionDeps) {
    this.#deps = deps;
  }

  /** Call it every few seconds, but only while the clock may be believed: nothing that is deleted comes back. */
  async step(): Promise<Result<void, Fault>> {
    const { store, clock, kept } = this.#deps;
    const nowMs = clock.nowMs();
    if (this.#upTo === undefined && nowMs - this.#throughAtMs < PAUSE_MS) return ok(undefined);
    const step = await store.deleteLongOver({ nowMs, forMs: DELETED_WHEN_OVER_MS, kept, after: this.#upTo ?? '' });
    if (!step.ok) return step;
    this.#upTo = step.value;
    if (step.value === undefined) this.#throughAtMs = nowMs;
    return ok(undefined);
  }
}

/** The start's action on the first key. `minted` carries the key to show on the terminal, never in the log. */
export type Bootstrap =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'minted'; readonly key: string; readonly record: ApiKey }
  | { readonly kind: 'set-from-environment'; readonly replaced: number }
  /** The key of the environment is in the store, revoked or expired. It stays so. */
  | { readonly kind: 'environment-key-dead'; readonly record: ApiKey };

const adminKey = (name: string, createdBy: string): NewApiKey => ({
  name,
  scopes: ['admin'],
  orgId: null,
  createdBy,
  expiresAtMs: null,
});

/**
 * Makes sure that there is a key to begin with. With `environmentKey`, that key is created unless it exists, and keys
 * of an earlier value are revoked. Without it, an admin key is minted when the store holds no key at all. Call what is
 * returned until the store has answered: it is about the same key each time.
 */
export function bootstrapOf(
  keys: ApiKeys,
  environmentKey: string | undefined,
): () => Promise<Result<Bootstrap, Fault>> {
  if (environmentKey !== undefined) return () => setFromEnvironment(keys, environmentKey);
  const made = keys.make(adminKey('first admin key', FIRST_KEY_CREATOR));
  return () => mintFirst(keys, made);
}

async function mintFirst(keys: ApiKeys, { key, record }: CreatedApiKey): Promise<Result<Bootstrap, Fault>> {
  if (keys.size > 0) return ok({ kind: 'unchanged' });
  const added = await keys.addFirst(record);
  if (!added.ok) return added;
  if (added.value === 'inserted') return ok({ kind: 'minted', key, record });
  // By another gateway a moment ago, or by this one, which was cut off from the store before it answered.
  const found = await keys.find({ digest: record.digest });
  if (!found.ok || found.value !== undefined) return found.ok ? ok({ kind: 'minted', key, record }) : found;
  const refreshed = await keys.refresh();
  return refreshed.ok ? ok({ kind: 'unchanged' }) : refreshed;
}

async function setFromEnvironment(keys: ApiKeys, environmentKey: string): Promise<Result<Bootstrap, Fault>> {
  const { record } = keys.make(adminKey('SVC_BOOTSTRAP_API_KEY', ENVIRONMENT_CREATOR), environmentKey);
  const found = await keys.find({ digest: record.digest });
  if (!found.ok) return found;
  const known = found.value;
  if (known !== undefined && !isUsable(known, record.createdAtMs))
    return ok({ kind: 'environment-key-dead', record: known });
  if (known === undefined) {
    const added = await keys.add(record);
    if (!added.ok) return added;
    if (added.value === 'exists') {
      const refreshed = await keys.refresh(); // another gateway set the same key a moment ago
      if (!refreshed.ok) return refreshed;
    }
  }
  // An operator who changes the variable wants the old value to stop working: it may have leaked.
  const outdated = keys
    .all()
    .filter(
      ({ createdBy, digest, revokedAtMs }) =>
        createdBy === ENVIRONMENT_CREATOR && digest !== record.digest && revokedAtMs === null,
    );
  for (const key of outdated) {
    const revoked = await keys.revoke(key, ENVIRONMENT_CREATOR);
    if (!revoked.ok) return revoked;
  }
  return ok(
    known === undefined || outdated.length > 0
      ? { kind: 'set-from-environment', replaced: outdated.length }
      : { kind: 'unchanged' },
  );
}
