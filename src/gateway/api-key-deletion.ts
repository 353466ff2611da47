import { DELETED_WHEN_OVER_MS } from '../core/api-key.ts';
import type { Fault } from '../core/fault.ts';
import type { SecretDigest } from '../core/ids.ts';
import { ok, type Result } from '../core/result.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import type { Clock } from './ports.ts';

export type ApiKeyDeletionDeps = {
  readonly store: Pick<ApiKeyStore, 'deleteLongOver'>;
  readonly clock: Clock;
  /** Of the key that the operator has set, which is not deleted: once unknown, it would be taken for a new one and come back to life. */
  readonly kept: SecretDigest | undefined;
};

/** The rest between two times that the store is gone through. */
const REST_MS = 60 * 60_000;

/** Deletes the API keys from the store that ended long ago, in small steps. The audit log keeps what they were. */
export class ApiKeyDeletion {
  readonly #deps: ApiKeyDeletionDeps;
  /** How far the store has been gone through; undefined between two times. */
  #upTo: string | undefined;
  #throughAtMs = -Infinity;

  constructor(deps: ApiKeyDeletionDeps) { this.#deps = deps; }

  /** Call it every few seconds, but only while the clock may be believed: nothing that is deleted comes back. */
  async step(): Promise<Result<void, Fault>> {
    const { store, clock, kept } = this.#deps;
    const nowMs = clock.nowMs();
    if (this.#upTo === undefined && nowMs - this.#throughAtMs < REST_MS) return ok(undefined);
    const step = await store.deleteLongOver({ nowMs, forMs: DELETED_WHEN_OVER_MS, kept, after: this.#upTo ?? '' });
    if (!step.ok) return step;
    this.#upTo = step.value;
    if (step.value === undefined) this.#throughAtMs = nowMs;
    return ok(undefined);
  }
}
