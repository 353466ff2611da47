import { DELETED_WHEN_OVER_MS } from '../core/api-key.ts';
import type { Fault } from '../core/fault.ts';
import type { SecretDigest } from '../core/ids.ts';
import { ok, type Result } from '../core/result.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import type { Clock } from './ports.ts';

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
